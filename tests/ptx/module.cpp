#include "module.hpp"

#include <fstream>
#include <sstream>

#include "loader.hpp"

namespace ptx {

struct Module::Implementation {
  std::string text;
  Program program;
  std::map<std::string, std::unique_ptr<Code>> codes;
};

Module::Module(std::string text) : implementation_(std::make_unique<Implementation>()) {
  implementation_->text = std::move(text);
  Program& program = implementation_->program;
  program.source = parse(implementation_->text);
  for (Function& function : program.source.functions) program.functions[function.name] = &function;
  const auto has_storage = [](const Variable& variable) { return variable.space != ".shared"; };
  for (const Variable& variable : program.source.variables)
    if (has_storage(variable)) program.storage[variable.name].resize((variable.size + 7) / 8 + 1);
  for (const Variable& variable : program.source.variables) {
    if (!has_storage(variable)) continue;
    u8* bytes = reinterpret_cast<u8*>(program.storage[variable.name].data());
    std::copy(variable.initial.begin(), variable.initial.end(), bytes);
    for (const auto& [offset, name] : variable.pointers)
      if (const auto found = program.storage.find(name); found != program.storage.end()) {
        const u64 address = reinterpret_cast<u64>(found->second.data());
        std::memcpy(bytes + offset, &address, sizeof address);
      }
  }
}
Module::~Module() = default;

bool Module::has(const std::string& entry) const {
  const auto found = implementation_->program.functions.find(entry);
  return found != implementation_->program.functions.end() && found->second->entry;
}
std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const Function& function : implementation_->program.source.functions)
    if (function.entry) names.push_back(function.name);
  return names;
}
void* Module::variable(const std::string& name) {
  const auto found = implementation_->program.storage.find(name);
  if (found == implementation_->program.storage.end()) throw Error("ptx: no variable " + name);
  return found->second.data();
}

void Module::check(const std::string& entry) {
  std::unique_ptr<Code>& code = implementation_->codes[entry];
  if (code) return;
  if (!has(entry)) throw Error("ptx: no entry " + entry);
  code = Loader(implementation_->program).load(*implementation_->program.functions[entry]);
}

namespace {

void check_launch(const Code& code, Dim3 grid, Dim3 block, u32 dynamic_shared, Module::Arguments arguments,
                  const Options& options) {
  const auto fail = [&](const std::string& what) {
    throw Error("ptx: launch of " + code.function->name + ": " + what);
  };
  const u64 threads = u64{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
    fail("invalid grid or block");
  if (code.function->max_threads && threads > code.function->max_threads)
    fail("a block of " + std::to_string(threads) + " threads exceeds .maxntid " +
         std::to_string(code.function->max_threads));
  const u64 shared = u64{code.dynamic_shared} - shared_base + dynamic_shared;
  if (shared > options.shared_limit)
    fail(std::to_string(shared) + " bytes of shared memory exceed the limit of " +
         std::to_string(options.shared_limit));
  if (arguments.size() != code.parameters.size())
    fail(std::to_string(arguments.size()) + " arguments for " + std::to_string(code.parameters.size()) + " parameters");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].size() != code.parameters[i].size)
      fail("argument " + std::to_string(i) + " has " + std::to_string(arguments[i].size()) + " bytes, the parameter " +
           std::to_string(code.parameters[i].size));
}

std::vector<u8> parameter_bytes(const Code& code, Module::Arguments arguments) {
  std::vector<u8> bytes(code.parameter_bytes + 8);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(&bytes[code.parameters[i].offset], arguments[i].data(), arguments[i].size());
  return bytes;
}

}  // namespace

void Module::run(const std::string& entry, Dim3 grid, Dim3 block, u32 dynamic_shared, Arguments arguments) {
  check(entry);
  const Code& code = *implementation_->codes[entry];
  check_launch(code, grid, block, dynamic_shared, arguments, options);
  const Source& source = implementation_->program.source;
  Buffers all = buffers;
  for (const Variable& variable : source.variables)
    if (variable.space != ".shared")
      all.add(implementation_->program.storage[variable.name].data(), variable.size, variable.name);
  approximate_ulp = options.ulp;
  Block one;
  one.code = &code;
  one.source = &source;
  one.options = &options;
  one.buffers = &all;
  one.statistics = &statistics;
  one.size = block;
  one.grid = grid;
  one.threads = block.x * block.y * block.z;
  one.dynamic_bytes = dynamic_shared;
  one.random.seed(options.seed + 1);
  one.set_parameters(parameter_bytes(code, arguments));
  for (Dim3 at{0, 0, 0}; at.z < grid.z; ++at.z)
    for (at.y = 0; at.y < grid.y; ++at.y)
      for (at.x = 0; at.x < grid.x; ++at.x) {
        ++statistics.blocks;
        one.start(at);
        one.run();
      }
  for (const Instruction& instruction : code.instructions) {
    if (!instruction.executed) continue;
    statistics.instructions[instruction.statement->op] += instruction.executed;
    instruction.executed_before += std::exchange(instruction.executed, 0);
  }
}

std::vector<Coverage> Module::coverage() const {
  std::vector<Coverage> all;
  const Source& source = implementation_->program.source;
  for (const auto& [name, code] : implementation_->codes) {
    if (!code) continue;
    Coverage coverage;
    coverage.entry = name;
    std::map<std::string, bool> source_lines;
    for (const Instruction& instruction : code->instructions) {
      const Statement& statement = *instruction.statement;
      if (!statement.line) continue;
      const bool ran = instruction.executed_before + instruction.executed > 0;
      bool& line = coverage.lines[statement.line];
      line = line || ran;
      if (!statement.location.line) continue;
      bool& source_line = source_lines[source.file_and_line(statement.location.file, statement.location.line)];
      source_line = source_line || ran;
    }
    for (const auto& [line, ran] : source_lines)
      if (!ran) coverage.never_ran.push_back(line);
    all.push_back(std::move(coverage));
  }
  return all;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("ptx: cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace ptx
