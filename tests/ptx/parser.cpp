#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lexer.hpp"
#include "source.hpp"

namespace ptx {

int type_bytes(std::string_view type) {
  if (type == ".pred") return 1;
  if (type == ".bf16") return 2;
  if (type == ".f16x2" || type == ".bf16x2" || type == ".tf32") return 4;
  if (type.size() <= 2 || !std::strchr("busf", type[1])) return 0;
  const int bits = std::atoi(std::string(type.substr(2)).c_str());
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

std::string Source::file_and_line(int file, int line) const {
  const auto found = files.find(file);
  const std::string name = found == files.end() ? "?" : found->second;
  const auto slash = name.rfind('/');
  return (slash == name.npos ? name : name.substr(slash + 1)) + ":" + std::to_string(line);
}

std::string Source::describe(const Location& location) const {
  if (!location.line) return "";
  std::string text = " (" + file_and_line(location.file, location.line);
  if (location.caller_line) text += " from " + file_and_line(location.caller_file, location.caller_line);
  return text + ")";
}

namespace {

// --- variables ------------------------------------------------------------------------------------------------------

/// {1, 2, {generic(name) + 4}}: numbers of `element` bytes and addresses of variables.
void read_initial(Lexer& words, Variable& variable, int element) {
  int depth = 0;
  do {
    if (words.accept("{")) {
      ++depth;
    } else if (words.accept("}")) {
      --depth;
    } else if (words.accept(",")) {
      continue;
    } else if (is_number(words.peek().text) || words.is("-")) {
      const auto bits = static_cast<u64>(words.integer());
      for (int i = 0; i < element; ++i) variable.initial.push_back(static_cast<u8>(bits >> 8 * i));
    } else {
      std::string name = words.next();
      if (name == "generic") {
        words.expect("(");
        name = words.next();
        words.expect(")");
      }
      if (words.is("+")) words.fail("an address with an offset as initial value is not supported");
      variable.pointers.push_back({variable.initial.size(), name});
      variable.initial.resize(variable.initial.size() + static_cast<std::size_t>(element));
    }
  } while (depth);
}

/// .align N .type name[sizes] = {initial}, after the space.
Variable read_variable(Lexer& words, const std::string& space) {
  Variable variable;
  variable.space = space;
  int element = 1, vector = 1;
  while (words.peek().text.substr(0, 1) == ".") {
    const std::string word = words.next();
    if (word == ".align")
      variable.align = std::max(variable.align, static_cast<u64>(words.integer()));
    else if (word == ".v2" || word == ".v4")
      vector = word[2] - '0';
    else if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const" || word == ".local")
      continue;  // what a pointer parameter points to
    else if (const int bytes = type_bytes(word))
      element = bytes;
    else
      words.fail("unknown attribute " + word + " of a variable");
  }
  element *= vector;
  variable.align = std::max(variable.align, static_cast<u64>(element));
  variable.name = words.next();
  u64 count = 1;
  while (words.accept("[")) {
    variable.unsized = words.is("]");
    count = variable.unsized ? 0 : count * static_cast<u64>(words.integer());
    words.expect("]");
  }
  variable.size = count * static_cast<u64>(element);
  if (words.accept("=")) read_initial(words, variable, element);
  return variable;
}

std::vector<Variable> read_parameters(Lexer& words) {
  std::vector<Variable> list;
  words.expect("(");
  while (!words.accept(")")) {
    if (words.accept(",")) continue;
    const std::string space = words.next();
    if (space == ".reg") words.fail("parameters in registers are not supported");
    list.push_back(read_variable(words, space));
  }
  return list;
}

// --- operands -------------------------------------------------------------------------------------------------------

Operand read_simple(Lexer& words) {
  Operand operand;
  if (words.accept("!")) {
    operand = read_simple(words);
    operand.negated = true;
    return operand;
  }
  if (words.accept("-")) {
    operand = read_simple(words);
    if (operand.kind != Operand::Kind::number) words.fail("'-' before what is not a number");
    operand.bits = 0 - operand.bits;
    return operand;
  }
  const std::string word = words.next();
  if (word == "_") {
    operand.kind = Operand::Kind::sink;
  } else if (is_number(word)) {
    operand.kind = Operand::Kind::number;
    operand.bits = Lexer::bits_of(word);
  } else {
    operand.name = word;
  }
  return operand;
}

Operand read_operand(Lexer& words) {
  Operand operand;
  if (words.accept("[")) {
    operand = read_simple(words);
    operand.kind = Operand::Kind::memory;
    if (words.accept("+") || words.is("-")) operand.offset = words.integer();
    while (words.accept(",")) operand.parts.push_back(read_operand(words));  // coordinates of a tensor
    words.expect("]");
    return operand;
  }
  if (words.is("{") || words.is("(")) {
    const bool list = words.is("(");
    words.next();
    operand.kind = list ? Operand::Kind::list : Operand::Kind::vector;
    while (!words.accept(list ? ")" : "}"))
      if (!words.accept(",")) operand.parts.push_back(read_operand(words));
    return operand;
  }
  operand = read_simple(words);
  if (words.accept("|")) {
    Operand pair;
    pair.kind = Operand::Kind::pair;
    pair.parts = {operand, read_simple(words)};
    return pair;
  }
  if (operand.kind == Operand::Kind::name && words.accept("+")) operand.offset = words.integer();
  return operand;
}

// --- bodies of functions --------------------------------------------------------------------------------------------

/// Statements of a function; `{ }` inside, as assembly strings have them, opens a scope of names.
class Body {
 public:
  Body(Lexer& words, Function& function) : words_(words), function_(function), scopes_(1) {}

  void read() {
    while (!words_.done()) {
      if (words_.accept("{"))
        scopes_.emplace_back();
      else if (words_.accept("}"))
        close_scope();
      else if (!read_directive())
        read_statement();
    }
  }

 private:
  struct Scope {
    std::unordered_map<std::string, std::string> names;
    std::vector<std::size_t> statements;  // may name labels that come later
  };

  std::string unique(const std::string& name) {
    return scopes_.size() > 1 ? name + "@" + std::to_string(++count_) : name;
  }
  std::string find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    return name;
  }
  void rename(Operand& operand) const {
    for (Operand& part : operand.parts) rename(part);
    if (!operand.name.empty()) operand.name = find(operand.name);
  }
  void close_scope() {
    if (scopes_.size() < 2) words_.fail("'}' without '{'");
    for (const std::size_t statement : scopes_.back().statements)
      for (Operand& operand : function_.statements[statement].operands) rename(operand);
    const auto statements = std::move(scopes_.back().statements);
    scopes_.pop_back();
    auto& outer = scopes_.back().statements;
    outer.insert(outer.end(), statements.begin(), statements.end());
  }

  void read_location() {
    const int line = words_.line();
    words_.next();
    location_ = Location{};
    location_.file = static_cast<int>(words_.integer());
    location_.line = static_cast<int>(words_.integer());
    while (!words_.done() && words_.line() == line)
      if (words_.next() == "inlined_at") {
        location_.caller_file = static_cast<int>(words_.integer());
        location_.caller_line = static_cast<int>(words_.integer());
      }
  }
  void read_registers() {
    words_.next();
    const int bytes = type_bytes(words_.next());
    if (!bytes) words_.fail("unknown type of a register");
    do {
      const std::string name = words_.next();
      if (words_.accept("<")) {
        function_.families.push_back({name, static_cast<int>(words_.integer()), bytes});
        words_.expect(">");
      } else {
        const std::string own = unique(name);
        scopes_.back().names[name] = own;
        function_.registers[own] = bytes;
      }
    } while (words_.accept(","));
    words_.expect(";");
  }
  void read_memory() {
    const std::string space = words_.next();
    Variable variable = read_variable(words_, space);
    if (space == ".param") {
      const std::string own = variable.name + "@" + std::to_string(++count_);
      scopes_.back().names[variable.name] = own;
      variable.name = own;
    }
    function_.variables.push_back(variable);
    words_.expect(";");
  }
  void read_label() {
    const std::string name = words_.next(), own = unique(name);
    words_.expect(":");
    scopes_.back().names[name] = own;
    function_.labels[own] = static_cast<int>(function_.statements.size());
    if (!words_.accept(".branchtargets")) return;
    auto& table = function_.tables[own];
    while (!words_.accept(";"))
      if (!words_.accept(",")) table.push_back(words_.next());
  }
  bool read_directive() {
    const std::string_view word = words_.peek().text;
    if (word == ".loc")
      read_location();
    else if (word == ".pragma")
      words_.skip_past(";");
    else if (word == ".reg")
      read_registers();
    else if (word == ".shared" || word == ".local" || word == ".param" || word == ".global" || word == ".const")
      read_memory();
    else if (words_.peek(1).text == ":")
      read_label();
    else
      return false;
    return true;
  }
  void read_statement() {
    Statement statement;
    statement.line = words_.line();
    statement.location = location_;
    if (words_.accept("@")) {
      statement.guard_negated = words_.accept("!");
      statement.guard = find(words_.next());
    }
    statement.op = words_.next();
    while (!words_.accept(";"))
      if (!words_.accept(",")) statement.operands.push_back(read_operand(words_));
    for (Operand& operand : statement.operands) rename(operand);
    scopes_.back().statements.push_back(function_.statements.size());
    function_.statements.push_back(std::move(statement));
  }

  Lexer& words_;
  Function& function_;
  std::vector<Scope> scopes_;
  Location location_;
  int count_ = 0;
};

void read_function(Lexer& words, Source& source, bool entry) {
  Function function;
  function.entry = entry;
  if (!entry && words.is("(")) function.results = read_parameters(words);
  function.name = words.next();
  if (words.is("(")) function.parameters = read_parameters(words);
  while (!words.is("{") && !words.is(";")) {
    if (!words.accept(".maxntid")) {
      words.next();
      continue;
    }
    function.max_threads = 1;
    do function.max_threads *= static_cast<u32>(words.integer());
    while (words.accept(","));
  }
  if (words.accept(";")) return;  // a declaration
  function.body_line = words.line();
  words.expect("{");
  function.body = words.skip_braces();
  source.functions.push_back(std::move(function));
}

void read_file_name(Lexer& words, Source& source) {
  const int number = static_cast<int>(words.integer());
  const std::string path = words.next();
  source.files[number] = path.substr(1, path.size() - 2);
  while (words.accept(",")) words.next();
}

}  // namespace

Source parse(std::string_view text) {
  Lexer words(text, 1);
  Source source;
  while (!words.done()) {
    const int line = words.line();
    const std::string word = words.next();
    if (word == ".target" || word == ".version" || word == ".address_size")
      while (!words.done() && words.line() == line) words.next();
    else if (word == ".file")
      read_file_name(words, source);
    else if (word == ".section")
      words.skip_past("}");
    else if (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common" || word == ";")
      continue;
    else if (word == ".entry" || word == ".func")
      read_function(words, source, word == ".entry");
    else if (word == ".global" || word == ".shared" || word == ".const") {
      source.variables.push_back(read_variable(words, word));
      words.expect(";");
    } else if (word == ".alias" || word == ".pragma")
      words.skip_past(";");
    else
      words.fail("unknown directive " + word);
  }
  return source;
}

void parse_body(Function& function) {
  if (function.parsed) return;
  function.parsed = true;
  Lexer words(function.body, function.body_line);
  Body(words, function).read();
}

}  // namespace ptx
