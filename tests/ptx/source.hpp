/// PTX text as statements: the grammar, not the meaning of any instruction.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "module.hpp"

namespace ptx {

/// Where an instruction comes from: .loc, and the innermost inlined_at.
struct Location {
  int file = 0, line = 0, caller_file = 0, caller_line = 0;
};

struct Operand {
  enum class Kind : u8 { name, number, memory, vector, pair, sink, list };  // name: a register, a variable or a label
  Kind kind = Kind::name;
  std::string name;
  s64 offset = 0;
  u64 bits = 0;
  bool negated = false;
  std::vector<Operand> parts;
};

struct Statement {
  std::string op, guard;
  bool guard_negated = false;
  std::vector<Operand> operands;
  int line = 0;
  Location location;
};

struct Variable {
  std::string name, space;
  u64 align = 1, size = 0;
  bool unsized = false;  // dynamic shared memory
  std::vector<u8> initial;
  std::vector<std::pair<u64, std::string>> pointers;  // offset, variable
};

struct Function {
  std::string name;
  bool entry = false;
  std::vector<Variable> parameters, results;
  u32 max_threads = 0;
  std::string_view body;
  int body_line = 0;

  // what parse_body fills
  bool parsed = false;
  std::vector<Variable> variables;
  std::unordered_map<std::string, int> registers;           // bytes per lane; a predicate has 1
  std::vector<std::tuple<std::string, int, int>> families;  // %r<N>: prefix, count, bytes per lane
  std::vector<Statement> statements;
  std::unordered_map<std::string, int> labels;
  std::unordered_map<std::string, std::vector<std::string>> tables;  // .branchtargets
};

struct Source {
  std::deque<Function> functions;
  std::vector<Variable> variables;
  std::map<int, std::string> files;

  /// ` (file:line from file:line)`, or nothing.
  std::string describe(const Location& location) const;
  std::string file_and_line(int file, int line) const;
};

/// Bytes of a type as in `.u32`, 0 when it is none.
int type_bytes(std::string_view type);

/// Everything but the bodies of functions, which stay views of the text.
Source parse(std::string_view text);
void parse_body(Function& function);

}  // namespace ptx
