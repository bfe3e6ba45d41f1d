/// A user's program: what every way to take in the library must be able to build and run.
#include <typeformer/core/error.hpp>

#include <cstdio>
#include <string>

// The library must never choose a CPU for its user, and must compile for the one that the user named.
#if defined(CONSUMER_NAMED_AVX2) != defined(__AVX2__)
#error "compiled for another CPU than the consumer named"
#endif

int main() {
  const typeformer::Error error("consume", "x", "4096 columns", "4095");
  const std::string sentence = error.what();
  std::puts(sentence.c_str());
  return sentence == "consume: x: expected 4096 columns, got 4095" ? 0 : 1;
}
