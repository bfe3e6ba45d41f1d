#include <typeformer/io.hpp>

#include <cstdio>
#include <string>

std::string chat();
std::string refusal(const char* path);

int main() {
  std::string architecture;
  try {
    typeformer::io::read_architecture("/nowhere");
  } catch (const typeformer::Error& error) {
    architecture = error.operation();
  }
  std::printf("%s; %s; %s\n", chat().c_str(), refusal("/nowhere").c_str(), architecture.c_str());
  return chat() == "hello, 7" && !refusal("/nowhere").empty() && !architecture.empty() ? 0 : 1;
}
