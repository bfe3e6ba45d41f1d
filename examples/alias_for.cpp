// Prints the alias of a checkpoint, as a program that loads it: a newcomer's own model is one paste away.
//
//   alias_for DIR_OR_GGUF [NAME]
//
// test: $GGUF SmolLM2
#include <cstdio>
#include <exception>
#include <string>
#include <typeformer/io.hpp>
#include <typeformer/report/alias.hpp>

namespace tf = typeformer;

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: alias_for DIR_OR_GGUF [NAME]\n"), 2;
  tf::Architecture architecture = tf::io::read_architecture(argv[1]).architecture;
  architecture.name = argc > 2 ? argv[2] : "Mine";
  const std::string name = tf::alias_name(architecture.name);
  std::printf(
      "#include <cstdio>\n"
      "#include <typeformer/cpu.hpp>\n"
      "#include <typeformer/io.hpp>\n"
      "using namespace typeformer;\n"
      "\n"
      "%s"
      "\n"
      "int main(int, char** argv) {\n"
      "  cpu::Device device;\n"
      "  const auto model = load<%s>(device, argv[1]);\n"
      "  std::puts(describe<%s>().c_str());\n"
      "}\n",
      tf::alias_source(architecture, name).c_str(), name.c_str(), name.c_str());
} catch (const std::exception& error) {  // names the field that no alias can say, with the file's value
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
