/// From a parsed entry to code: names become places, calls are inlined.
#pragma once
#include <set>
#include <unordered_map>

#include "decoder.hpp"
#include "table.hpp"

namespace ptx {

/// What an entry may refer to besides itself.
struct Program {
  Source source;
  std::unordered_map<std::string, Function*> functions;
  std::map<std::string, std::vector<u64>> storage;  // of global and constant variables
};

/// Device functions that the driver provides; null when it does not.
Execute find_builtin(const std::string& name);

class Loader {
 public:
  explicit Loader(Program& program) : program_(program) {}
  std::unique_ptr<Code> load(Function& entry);

 private:
  /// One inlined copy of a function: its own registers, local memory and .param variables.
  struct Copy {
    const Function* function;
    std::string prefix;
    std::map<std::string, u64> local;
    int depth = 0;
  };
  using Span = std::pair<std::size_t, std::size_t>;

  void place(Function& function, std::set<const Function*>& seen);
  void place_shared(const Variable& variable);
  void place_parameters(const Function& entry);
  Slot new_register(const std::string& name, int width);
  Slot temporary(int width) { return new_register("(temporary)", width); }
  Slot constant(u64 bits, int width);
  const Slot* find_register(const std::string& name);
  Slot slot(const Operand& operand, int width);

  void emit(const Function& function, Copy& copy);
  void emit_statement(const Statement& statement, const Function& function);
  void emit_call(const Statement& statement, Instruction instruction, std::vector<Span>& inlined);
  bool emit_builtin(const std::string& callee, const std::vector<Operand>& arguments,
                    const std::vector<Operand>& results, Instruction instruction);
  void emit_simple(const char* name, const Instruction& like, std::vector<Slot> slots);
  void emit_comparison(const std::vector<std::string>& words, const Instruction& like, std::vector<Operand> operands,
                       bool flush);
  void emit_set(const std::vector<std::string>& words, const Instruction& like, std::vector<Operand> operands,
                bool flush);
  bool emit_from_table(const std::string& name, Instruction instruction, const std::vector<Operand>& operands,
                       Slot result);
  void resolve_targets(std::size_t first, const std::vector<int>& at, const std::vector<Span>& inlined);
  [[noreturn]] void fail(const std::string& what) const;

  Program& program_;
  std::unique_ptr<Code> code_;
  std::unordered_map<std::string, Slot> registers_;
  std::unordered_map<std::string, u64> addresses_;
  std::map<std::pair<u64, int>, Slot> constants_;
  std::set<std::string> used_;
  Copy* copy_ = nullptr;
  const Statement* statement_ = nullptr;
  u32 shared_end_ = shared_base;
  u64 dynamic_align_ = 1, local_end_ = 16;
};

}  // namespace ptx
