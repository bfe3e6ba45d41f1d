#include "loader.hpp"

#include <cstdlib>
#include <sstream>

namespace ptx {
namespace {

u64 round_up(u64 value, u64 align) { return (value + align - 1) / align * align; }
/// An odd multiple of the alignment: nothing is better aligned than it was declared.
u64 odd_multiple(u64 value, u64 align) {
  const u64 next = round_up(value, align);
  return next / align % 2 ? next : next + align;
}

int special_width(const std::string& name) {
  static const std::set<std::string> words = {"%laneid",
                                              "%warpid",
                                              "%nwarpid",
                                              "%smid",
                                              "%nsmid",
                                              "%gridid",
                                              "%lanemask_eq",
                                              "%lanemask_le",
                                              "%lanemask_lt",
                                              "%lanemask_ge",
                                              "%lanemask_gt",
                                              "%dynamic_smem_size",
                                              "%total_smem_size",
                                              "%clock",
                                              "%reserved_smem_offset_0",
                                              "%reserved_smem_offset_1",
                                              "%envreg1",
                                              "%envreg2"};
  if (name == "%clock64" || name == "%globaltimer") return 8;
  for (const char* prefix : {"%tid.", "%ntid.", "%ctaid.", "%nctaid.", "%cluster"})
    if (name.rfind(prefix, 0) == 0) return 4;
  return words.count(name) ? 4 : 0;
}

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> words;
  std::stringstream stream(name);
  for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
  return words;
}
std::string join(const std::vector<std::string>& words) {
  std::string name;
  for (const std::string& word : words) name += (name.empty() ? "" : ".") + word;
  return name;
}
bool is_call(const Statement& statement) { return statement.op.rfind("call", 0) == 0; }

}  // namespace

void Loader::fail(const std::string& what) const {
  throw Error("ptx: line " + std::to_string(statement_ ? statement_->line : 0) + ": " +
              (statement_ ? statement_->op + ": " : "") + what);
}

// --- places ---------------------------------------------------------------------------------------------------------

void Loader::place_shared(const Variable& variable) {
  if (variable.unsized) {
    dynamic_align_ = std::max(dynamic_align_, variable.align);
    return;
  }
  const u32 gap = shared_end_ > shared_base ? 16 : 0;
  shared_end_ = static_cast<u32>(odd_multiple(shared_end_ + gap, variable.align));
  addresses_[variable.name] = shared_end_;
  code_->shared_variables.push_back({shared_end_, static_cast<u32>(variable.size)});
  shared_end_ += static_cast<u32>(variable.size);
}

/// Shared variables of a function and of those that it calls; notes which names are used.
void Loader::place(Function& function, std::set<const Function*>& seen) {
  if (!seen.insert(&function).second) return;
  parse_body(function);
  for (const Statement& statement : function.statements)
    for (const Operand& operand : statement.operands) used_.insert(operand.name);
  for (const Variable& variable : function.variables)
    if (variable.space == ".shared" && !addresses_.count(variable.name)) place_shared(variable);
  for (const Statement& statement : function.statements) {
    if (!is_call(statement)) continue;
    for (const Operand& operand : statement.operands)
      if (const auto callee = program_.functions.find(operand.name); callee != program_.functions.end())
        place(*callee->second, seen);
  }
}

void Loader::place_parameters(const Function& entry) {
  u64 end = 0;
  for (const Variable& variable : entry.parameters) {
    end = round_up(end, variable.align);
    addresses_[variable.name] = end;
    code_->parameters.push_back({static_cast<u32>(end), static_cast<u32>(variable.size)});
    end += variable.size;
  }
  code_->parameter_bytes = static_cast<u32>(end);
}

Slot Loader::new_register(const std::string& name, int width) {
  Slot slot;
  slot.offset = static_cast<int>(code_->register_bytes);
  slot.width = static_cast<u8>(width);
  slot.number = static_cast<int>(code_->register_names.size());
  code_->register_bytes += static_cast<u32>(round_up(warp_size * static_cast<u64>(width), 32));
  code_->register_names.push_back(name);
  return slot;
}

Slot Loader::constant(u64 bits, int width) {
  if (width < 8) bits &= (u64{1} << 8 * width) - 1;
  Slot& slot = constants_[{bits, width}];
  if (slot.constant) return slot;
  slot.constant = true;
  slot.width = static_cast<u8>(width);
  const std::size_t first = round_up(code_->constants.size(), 32), bytes = static_cast<std::size_t>(width);
  slot.offset = static_cast<int>(first);
  code_->constants.resize(first + warp_size * bytes);
  for (std::size_t lane = 0; lane < warp_size; ++lane)
    std::memcpy(&code_->constants[first + lane * bytes], &bits, std::min<std::size_t>(bytes, 8));
  return slot;
}

const Slot* Loader::find_register(const std::string& name) {
  if (const int width = special_width(name); width && !registers_.count(name)) {
    Slot special = new_register(name, width);
    special.number = -1;
    registers_[name] = special;
    code_->specials.push_back({name, special});
  }
  if (const auto found = registers_.find(name); found != registers_.end() && found->second.number < 0)
    return &found->second;
  const std::string own = copy_->prefix + name;
  if (const auto found = registers_.find(own); found != registers_.end()) return &found->second;
  const Function& function = *copy_->function;
  if (const auto found = function.registers.find(name); found != function.registers.end())
    return &(registers_[own] = new_register(own, found->second));
  std::size_t digits = name.size();
  while (digits && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  if (digits == name.size()) return nullptr;
  for (const auto& [prefix, count, width] : function.families)
    if (prefix.size() == digits && name.compare(0, digits, prefix) == 0 && std::atoi(name.c_str() + digits) < count)
      return &(registers_[own] = new_register(own, width));
  return nullptr;
}

Slot Loader::slot(const Operand& operand, int width) {
  if (operand.kind == Operand::Kind::sink) return {};
  if (operand.kind == Operand::Kind::number) return constant(operand.bits, width);
  if (operand.kind != Operand::Kind::name) fail("unexpected operand");
  if (operand.negated) fail("unexpected '!'");
  if (const Slot* found = find_register(operand.name)) return *found;
  const u64 offset = static_cast<u64>(operand.offset);
  if (const auto found = copy_->local.find(operand.name); found != copy_->local.end())
    return constant(found->second + offset, width);
  if (const auto found = addresses_.find(operand.name); found != addresses_.end())
    return constant(found->second + offset, width);
  if (operand.name == "WARP_SZ") return constant(warp_size, width);
  fail("unknown name " + operand.name);
}

// --- instructions ---------------------------------------------------------------------------------------------------

void Loader::emit_simple(const char* name, const Instruction& like, std::vector<Slot> slots) {
  Instruction instruction;
  instruction.statement = like.statement;
  instruction.guard = like.guard;
  instruction.guard_negated = like.guard_negated;
  instruction.execute = table().find(name)->execute;
  instruction.written = 1;
  for (const Slot& one : slots) instruction.operands[instruction.count++] = one;
  code_->instructions.push_back(instruction);
}

/// False when the table does not have the name. result: where to put it instead of the first operand's register.
bool Loader::emit_from_table(const std::string& name, Instruction instruction, const std::vector<Operand>& operands,
                             Slot result) {
  const Entry* entry = table().find(name);
  if (!entry) return false;
  instruction.execute = entry->execute;
  instruction.written = 1;
  if (static_cast<int>(operands.size()) != entry->count)
    fail("takes " + std::to_string(entry->count) + " operands, has " + std::to_string(operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand operand = operands[i];
    const int width = entry->widths[i];
    if (operand.negated) {  // !p: an instruction of its own
      operand.negated = false;
      const Slot negated = temporary(1);
      emit_simple("not.pred", instruction, {negated, slot(operand, 1)});
      instruction.operands[instruction.count++] = negated;
      continue;
    }
    if (width == 1 && operand.kind == Operand::Kind::number) operand.bits = operand.bits != 0;
    const Slot place = i == 0 && result.width ? result : slot(operand, width);
    if (place.width == 0) fail("'_' is not allowed here");
    if (place.width != width) {  // cvt takes wider registers
      if (name.rfind("cvt.", 0) != 0 || (i > 0 && place.width < width))
        fail("operand " + std::to_string(i) + " has " + std::to_string(place.width * 8) + " bits");
      instruction.widths_differ = true;
    }
    instruction.operands[instruction.count++] = place;
  }
  code_->instructions.push_back(instruction);
  return true;
}

/// setp.<comparison>[.<boolean>].<type> d[|e], a, b[, c]: d = (a ? b) op c, e = !(a ? b) op c.
void Loader::emit_comparison(const std::vector<std::string>& words, const Instruction& like,
                             std::vector<Operand> operands, bool flush) {
  if (operands.empty()) fail("an operand is missing");
  const bool combines = words.size() == 4, pair = operands[0].kind == Operand::Kind::pair;
  const Operand first = pair ? operands[0].parts[0] : operands[0];
  const Slot d = slot(first, 1), e = pair ? slot(operands[0].parts[1], 1) : Slot{};
  Operand third;
  if (combines) {
    third = operands.back();
    operands.pop_back();
  }
  operands[0] = first;
  Instruction instruction = like;
  instruction.flush = flush;
  const Slot holds = combines || pair ? temporary(1) : d;
  if (!emit_from_table(words[0] + "." + words[1] + "." + words.back(), instruction, operands, holds))
    fail("unknown instruction");
  if (!combines && !pair) return;
  Slot holds_not = temporary(1), with = holds, with_not = holds_not;
  emit_simple("not.pred", like, {holds_not, holds});
  std::string operation = "or.pred";  // with itself: a move
  if (combines) {
    operation = words[2] + ".pred";
    if (!table().find(operation)) fail("unknown instruction");
    const bool negated = third.negated;
    third.negated = false;
    if (third.kind == Operand::Kind::number) third.bits = third.bits != 0;
    with = slot(third, 1);
    if (negated) {
      const Slot plain = with;
      with = temporary(1);
      emit_simple("not.pred", like, {with, plain});
    }
    with_not = with;
  }
  if (d.width) emit_simple(operation.c_str(), like, {d, holds, with});
  if (e.width) emit_simple(operation.c_str(), like, {e, holds_not, with_not});
}

/// set.<comparison>.<result type>.<type>: all ones, or 1.0.
void Loader::emit_set(const std::vector<std::string>& words, const Instruction& like, std::vector<Operand> operands,
                      bool flush) {
  if (operands.size() != 3 || type_of(words[2]).bytes != 4) fail("unknown form");
  const Slot result = slot(operands[0], 4), holds = temporary(1);
  Instruction instruction = like;
  instruction.flush = flush;
  if (!emit_from_table("setp." + words[1] + "." + words[3], instruction, operands, holds)) fail("unknown instruction");
  emit_simple("selp.b32", like, {result, constant(words[2] == "f32" ? 0x3f800000u : ~0u, 4), constant(0, 4), holds});
}

void Loader::emit_statement(const Statement& statement, const Function& function) {
  Instruction instruction;
  instruction.statement = &statement;
  if (!statement.guard.empty()) {
    const Slot* guard = find_register(statement.guard);
    if (!guard || guard->width != 1) fail("the guard " + statement.guard + " is no predicate");
    instruction.guard = *guard;
    instruction.guard_negated = statement.guard_negated;
  }
  if (!function.entry && (statement.op == "ret" || statement.op == "ret.uni")) {  // to the end of the inlined copy
    instruction.kind = Kind::branch;
    instruction.target = static_cast<int>(function.statements.size());
    code_->instructions.push_back(instruction);
    return;
  }
  std::vector<std::string> words = split(statement.op);
  const bool flush = std::erase(words, "ftz") > 0;
  if (words[0] == "setp" && (words.size() == 3 || words.size() == 4))
    return emit_comparison(words, instruction, statement.operands, flush);
  if (words[0] == "set" && words.size() == 4) return emit_set(words, instruction, statement.operands, flush);
  instruction.flush = flush;
  if (emit_from_table(join(words), instruction, statement.operands, {})) return;
  const Decode decode = find_decoder(words[0]);
  if (!decode) fail("unknown instruction");
  Decoder decoder{statement,
                  function,
                  instruction,
                  words,
                  [this](const Operand& operand, int width) { return slot(operand, width); },
                  [this](const std::string& name) { return copy_->local.count(name) > 0; }};
  decode(decoder);
  code_->instructions.push_back(instruction);
}

// --- calls ----------------------------------------------------------------------------------------------------------

bool Loader::emit_builtin(const std::string& callee, const std::vector<Operand>& arguments,
                          const std::vector<Operand>& results, Instruction instruction) {
  instruction.execute = find_builtin(callee);
  if (!instruction.execute) return false;
  for (const auto& list : {arguments, results})
    for (const Operand& operand : list) {
      if (!copy_->local.count(operand.name)) fail("unknown parameter " + operand.name);
      instruction.operands[instruction.count++] = constant(copy_->local[operand.name], 8);
    }
  code_->instructions.push_back(instruction);
  return true;
}

void Loader::emit_call(const Statement& statement, Instruction instruction, std::vector<Span>& inlined) {
  std::vector<Operand> results, arguments;
  std::size_t next = 0;
  const auto is_list = [&] {
    return next < statement.operands.size() && statement.operands[next].kind == Operand::Kind::list;
  };
  if (is_list()) results = statement.operands[next++].parts;
  if (next >= statement.operands.size()) fail("calls nothing");
  const std::string callee = statement.operands[next++].name;
  if (is_list()) arguments = statement.operands[next].parts;
  if (emit_builtin(callee, arguments, results, instruction)) return;
  const auto found = program_.functions.find(callee);
  if (found == program_.functions.end()) fail("unknown function " + callee + " (calls by address are not supported)");
  const Function& function = *found->second;
  if (copy_->depth > 16) fail("recursion, or calls too deep");
  if (!statement.guard.empty()) fail("a call under a predicate is not supported");
  if (function.parameters.size() != arguments.size() || function.results.size() != results.size())
    fail("wrong number of parameters of " + callee);
  Copy copy{
      &function, copy_->prefix + callee + "#" + std::to_string(code_->instructions.size()) + ":", {}, copy_->depth + 1};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    copy.local[function.parameters[i].name] = copy_->local.at(arguments[i].name);
  for (std::size_t i = 0; i < results.size(); ++i)
    copy.local[function.results[i].name] = copy_->local.at(results[i].name);
  const std::size_t first = code_->instructions.size();
  emit(function, copy);
  inlined.push_back({first, code_->instructions.size()});
  statement_ = &statement;
}

/// Targets were statements, those of inlined copies are instructions already.
void Loader::resolve_targets(std::size_t first, const std::vector<int>& at, const std::vector<Span>& inlined) {
  std::size_t next = 0;
  for (std::size_t i = first; i < code_->instructions.size(); ++i) {
    while (next < inlined.size() && i >= inlined[next].second) ++next;
    if (next < inlined.size() && i >= inlined[next].first) continue;
    Instruction& instruction = code_->instructions[i];
    if (instruction.kind == Kind::branch) instruction.target = at[static_cast<std::size_t>(instruction.target)];
    for (int& target : instruction.targets) target = at[static_cast<std::size_t>(target)];
  }
}

void Loader::emit(const Function& function, Copy& copy) {
  Copy* outer = std::exchange(copy_, &copy);
  const std::size_t first = code_->instructions.size();
  for (const Variable& variable : function.variables) {
    if (variable.space != ".local" && variable.space != ".param") continue;
    local_end_ = odd_multiple(local_end_, std::max<u64>(variable.align, 4));
    copy.local[variable.name] = local_end_;
    local_end_ += round_up(variable.size, 4);
  }
  std::vector<int> at;  // statement -> instruction
  std::vector<Span> inlined;
  for (const Statement& statement : function.statements) {
    statement_ = &statement;
    at.push_back(static_cast<int>(code_->instructions.size()));
    Instruction instruction;
    instruction.statement = &statement;
    if (is_call(statement))
      emit_call(statement, instruction, inlined);
    else
      emit_statement(statement, function);
  }
  at.push_back(static_cast<int>(code_->instructions.size()));
  resolve_targets(first, at, inlined);
  copy_ = outer;
}

std::unique_ptr<Code> Loader::load(Function& entry) {
  static const Statement end = [] {
    Statement statement;
    statement.op = "(end of the function)";
    return statement;
  }();
  code_ = std::make_unique<Code>();
  code_->function = &entry;
  std::set<const Function*> seen;
  place(entry, seen);
  for (const Variable& variable : program_.source.variables)
    if (variable.space == ".shared" && (variable.unsized || used_.count(variable.name))) place_shared(variable);
  const u32 gap = shared_end_ > shared_base ? 16 : 0;
  code_->dynamic_shared = static_cast<u32>(odd_multiple(shared_end_ + gap, dynamic_align_));
  for (const Variable& variable : program_.source.variables)
    if (variable.space == ".shared" && variable.unsized) addresses_[variable.name] = code_->dynamic_shared;
  place_parameters(entry);
  for (const auto& [name, words] : program_.storage) addresses_[name] = reinterpret_cast<u64>(words.data());
  Copy whole{&entry, "", {}, 0};
  emit(entry, whole);
  code_->local_bytes = static_cast<u32>(local_end_);
  Instruction last;
  last.kind = Kind::exit;
  last.statement = &end;
  code_->instructions.push_back(last);
  return std::move(code_);
}

}  // namespace ptx
