/// Parses the expressions of a chat template. The grammar is Jinja 3's, less what is refused by name.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/lexer.hpp"
#include "typeformer/text/jinja/syntax.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// A position in a template's words, and the expressions that begin there. The base of Parser.
class ExpressionParser {
 protected:
  explicit ExpressionParser(std::string_view source) : words_(Lexer(source).words()) {}

  using Kind = Word::Kind;
  // Both bound the stack of whoever walks the tree.
  static constexpr int deepest_nesting = 100;
  static constexpr std::size_t deepest_expression = 400;

  struct Nesting {  // one level of recursion
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.nesting_ > deepest_nesting)
        refuse(parser_.now().line, "at most " + std::to_string(deepest_nesting) + " levels of nesting", "more");
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.nesting_; }
    ExpressionParser& parser_;
  };

  const Word& now() const { return words_[at_]; }
  const Word& ahead() const { return words_[std::min(at_ + 1, words_.size() - 1)]; }
  bool is_sign(std::string_view text) const { return now().kind == Kind::sign && now().text == text; }
  bool is_name(std::string_view text) const { return now().kind == Kind::name && now().text == text; }
  bool skip_sign(std::string_view text) {
    const bool found = is_sign(text);
    at_ += found ? 1 : 0;
    return found;
  }
  bool skip_name(std::string_view text) {
    const bool found = is_name(text);
    at_ += found ? 1 : 0;
    return found;
  }
  static std::string described(const Word& word) {
    switch (word.kind) {
      case Kind::end:
        return "the end of the template";
      case Kind::tag_end:
        return "'%}'";
      case Kind::print_end:
        return "'}}'";
      case Kind::text:
        return "text";
      case Kind::tag_begin:
        return "'{%'";
      case Kind::print_begin:
        return "'{{'";
      default:
        return "'" + word.text + "'";
    }
  }
  [[noreturn]] void unexpected(std::string_view wanted) const { refuse(now().line, wanted, described(now())); }
  void expect_sign(std::string_view text) {
    if (!skip_sign(text)) unexpected("'" + std::string(text) + "'");
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) unexpected("'" + std::string(text) + "'");
  }
  std::string identifier() {
    if (now().kind != Kind::name) unexpected("a name");
    return words_[at_++].text;
  }

  // Expressions, from the weakest binding to the strongest.

  ExpressionPointer make(Expression::Kind kind, int line, ExpressionPointer first = nullptr) const {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->first = std::move(first);
    return node;
  }
  // Every node passes here when its children are in place.
  ExpressionPointer finish(ExpressionPointer node) const {
    const auto include = [&](const ExpressionPointer& child) {
      if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
    };
    include(node->first);
    for (const auto& child : node->children) include(child);
    for (const auto& argument : node->named) include(argument.value);
    if (node->depth > deepest_expression)
      refuse(node->line, "an expression of at most " + std::to_string(deepest_expression) + " levels", "more");
    return node;
  }
  ExpressionPointer pair(Expression::Kind kind, ExpressionPointer left, ExpressionPointer right,
                         std::string text = {}) const {
    const int line = left->line;
    ExpressionPointer node = make(kind, line, std::move(left));
    node->children.push_back(std::move(right));
    node->text = std::move(text);
    return finish(std::move(node));
  }

  bool tuple_ends() const { return now().kind == Kind::print_end || now().kind == Kind::tag_end || is_sign(")"); }
  ExpressionPointer tuple_or_expression(bool conditional = true) {
    const int line = now().line;
    ExpressionPointer first = conditional ? expression() : either();
    if (!is_sign(",")) return first;
    ExpressionPointer node = make(Expression::Kind::tuple, line);
    node->children.push_back(std::move(first));
    while (skip_sign(",") && !tuple_ends()) node->children.push_back(conditional ? expression() : either());
    return finish(std::move(node));
  }

  ExpressionPointer expression() {
    const Nesting level(*this);
    ExpressionPointer value = either();
    while (is_name("if")) {
      ++at_;
      ExpressionPointer node = pair(Expression::Kind::conditional, std::move(value), either());
      node->children.push_back(skip_name("else") ? expression() : nullptr);
      value = finish(std::move(node));
    }
    return value;
  }
  ExpressionPointer either() {
    ExpressionPointer left = both();
    while (skip_name("or")) left = pair(Expression::Kind::either, std::move(left), both());
    return left;
  }
  ExpressionPointer both() {
    ExpressionPointer left = negation();
    while (skip_name("and")) left = pair(Expression::Kind::both, std::move(left), negation());
    return left;
  }
  ExpressionPointer negation() {
    const Nesting level(*this);
    const int line = now().line;
    if (skip_name("not")) return finish(make(Expression::Kind::negation, line, negation()));
    return comparison();
  }
  ExpressionPointer comparison() {
    ExpressionPointer left = sum();
    ExpressionPointer node = make(Expression::Kind::comparison, left->line);
    for (;;) {
      std::string sign;
      for (const std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
        if (is_sign(known)) sign = known;
      }
      if (is_name("in")) sign = "in";
      if (is_name("not") && ahead().kind == Kind::name && ahead().text == "in") sign = "not in";
      if (sign.empty()) break;
      at_ += sign == "not in" ? 2u : 1u;
      node->operators.push_back(sign);
      node->children.push_back(sum());
    }
    if (node->operators.empty()) return left;
    node->first = std::move(left);
    return finish(std::move(node));
  }
  // The operators of one level, left to right.
  template <class Next>
  ExpressionPointer chain(std::initializer_list<std::string_view> signs, const Next& next) {
    ExpressionPointer left = next();
    for (;;) {
      const auto* sign = std::find_if(signs.begin(), signs.end(), [&](std::string_view s) { return is_sign(s); });
      if (sign == signs.end()) return left;
      ++at_;
      left = pair(Expression::Kind::binary, std::move(left), next(), std::string(*sign));
    }
  }
  ExpressionPointer sum() {
    return chain({"+", "-"}, [&] { return chain({"~"}, [&] { return product(); }); });
  }
  ExpressionPointer product() {
    ExpressionPointer value = chain({"*", "//", "/", "%"}, [&] { return unary(true); });
    if (is_sign("**")) refuse_unsupported(now().line, "the operator '**'");
    return value;
  }
  ExpressionPointer unary(bool with_filters) {
    const Nesting level(*this);
    const int line = now().line;
    ExpressionPointer value;
    if (is_sign("-") || is_sign("+")) {
      std::string sign = words_[at_++].text;
      value = make(Expression::Kind::sign, line, unary(false));
      value->text = std::move(sign);
      value = finish(std::move(value));
    } else {
      value = primary();
    }
    value = postfix(std::move(value));
    return with_filters ? filters(std::move(value)) : std::move(value);
  }

  ExpressionPointer literal(Value value) {
    ExpressionPointer node = make(Expression::Kind::literal, now().line);
    node->value = std::move(value);
    return node;
  }
  ExpressionPointer primary() {
    const Word& word = now();
    if (word.kind == Kind::name) return name();
    if (word.kind == Kind::string) {
      std::string text;
      while (now().kind == Kind::string) text += words_[at_++].text;  // neighbours join
      return literal(Value(std::move(text)));
    }
    if (word.kind == Kind::integer || word.kind == Kind::number) return number();
    if (skip_sign("(")) {
      ExpressionPointer inner = skip_sign(")") ? nullptr : tuple_or_expression();
      if (inner == nullptr) return make(Expression::Kind::tuple, word.line);
      expect_sign(")");
      return inner;
    }
    if (skip_sign("[")) {
      ExpressionPointer node = make(Expression::Kind::list, word.line);
      while (!skip_sign("]")) {
        node->children.push_back(expression());
        if (!is_sign("]")) expect_sign(",");
      }
      return finish(std::move(node));
    }
    if (skip_sign("{")) {
      ExpressionPointer node = make(Expression::Kind::dict, word.line);
      while (!skip_sign("}")) {
        node->children.push_back(expression());
        expect_sign(":");
        node->children.push_back(expression());
        if (!is_sign("}")) expect_sign(",");
      }
      return finish(std::move(node));
    }
    unexpected("an expression");
  }
  ExpressionPointer name() {
    const int line = now().line;
    const std::string text = identifier();
    if (text == "true" || text == "True") return literal(Value(true));
    if (text == "false" || text == "False") return literal(Value(false));
    if (text == "none" || text == "None") return literal(Value());
    for (const std::string_view other :
         {"cycler", "joiner", "lipsum", "self", "super", "varargs", "kwargs", "caller"}) {
      if (text == other) refuse_unsupported(line, "'" + text + "'");
    }
    ExpressionPointer node = make(Expression::Kind::name, line);
    node->text = text;
    return node;
  }
  ExpressionPointer number() {
    const Word& word = words_[at_++];
    const char* end = word.text.data() + word.text.size();
    std::int64_t integer = 0;
    double real = 0;
    const bool whole = word.kind == Kind::integer;
    const auto result =
        whole ? std::from_chars(word.text.data(), end, integer) : std::from_chars(word.text.data(), end, real);
    if (result.ec != std::errc{}) refuse(word.line, "a number of 64 bits", "'" + word.text + "'");
    return literal(whole ? Value(integer) : Value(real));
  }

  ExpressionPointer postfix(ExpressionPointer value) {
    for (;;) {
      const int line = now().line;
      if (skip_sign(".")) {
        if (now().kind == Kind::integer) {
          value = pair(Expression::Kind::item, std::move(value), number());
          continue;
        }
        value = make(Expression::Kind::attribute, line, std::move(value));
        value->text = identifier();
        value = finish(std::move(value));
      } else if (skip_sign("[")) {
        value = subscript(std::move(value), line);
      } else if (is_sign("(")) {
        value = make(Expression::Kind::call, line, std::move(value));
        arguments(*value);
        value = finish(std::move(value));
      } else {
        return value;
      }
    }
  }
  ExpressionPointer subscript(ExpressionPointer value, int line) {
    std::array<ExpressionPointer, 3> parts;
    std::size_t colons = 0;
    while (!is_sign("]")) {
      if (is_sign(":") && colons < 2) {
        ++colons;
        ++at_;
      } else if (parts[colons] == nullptr) {
        parts[colons] = expression();
      } else {
        unexpected("']'");
      }
    }
    expect_sign("]");
    if (colons == 0 && parts[0] == nullptr) refuse(line, "an index", "nothing");
    if (colons == 0) return pair(Expression::Kind::item, std::move(value), std::move(parts[0]));
    ExpressionPointer node = make(Expression::Kind::slice, line, std::move(value));
    for (ExpressionPointer& part : parts) node->children.push_back(std::move(part));
    return finish(std::move(node));
  }
  void arguments(Expression& call) {
    expect_sign("(");
    while (!skip_sign(")")) {
      if (is_sign("*") || is_sign("**")) refuse_unsupported(now().line, "an argument list in a variable");
      if (now().kind == Kind::name && ahead().kind == Kind::sign && ahead().text == "=") {
        std::string name = identifier();
        ++at_;
        call.named.push_back({std::move(name), expression()});
      } else {
        if (!call.named.empty()) unexpected("a named argument");
        call.children.push_back(expression());
      }
      if (!is_sign(")")) expect_sign(",");
    }
  }

  std::string dotted_name() {
    std::string name = identifier();
    while (skip_sign(".")) name += "." + identifier();
    return name;
  }
  ExpressionPointer filters(ExpressionPointer value) {
    for (;;) {
      const int line = now().line;
      if (skip_sign("|")) {
        value = make(Expression::Kind::filter, line, std::move(value));
        value->text = dotted_name();
        if (is_sign("(")) arguments(*value);
        value = finish(std::move(value));
      } else if (skip_name("is")) {
        value = test(std::move(value), line);
      } else if (is_sign("(")) {
        value = make(Expression::Kind::call, line, std::move(value));
        arguments(*value);
        value = finish(std::move(value));
      } else {
        return value;
      }
    }
  }
  ExpressionPointer test(ExpressionPointer value, int line) {
    const bool negated = skip_name("not");
    ExpressionPointer node = make(Expression::Kind::test, line, std::move(value));
    node->text = dotted_name();
    const bool operand = now().kind == Kind::string || now().kind == Kind::integer || now().kind == Kind::number ||
                         is_sign("[") || is_sign("{") ||
                         (now().kind == Kind::name && !is_name("else") && !is_name("or") && !is_name("and"));
    if (is_sign("(")) {
      arguments(*node);
    } else if (operand) {
      if (is_name("is")) refuse(line, "one test", "a chain of them");
      node->children.push_back(postfix(primary()));
    }
    node = finish(std::move(node));
    return negated ? finish(make(Expression::Kind::negation, line, std::move(node))) : std::move(node);
  }

  std::vector<Word> words_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace typeformer
