/// Parses the statements of a chat template into its syntax tree.
#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/expression_parser.hpp"
#include "typeformer/text/jinja/syntax.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// One template's parser. Throws Error naming the line for what is not Jinja or not supported.
class Parser : ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(source) {}

  Template parse() { return {statements({})}; }

 private:
  // Reads until a tag of one of the given names, which is left; without names, until the end.
  Block statements(std::initializer_list<std::string_view> ends) {
    const Nesting level(*this);
    Block block;
    for (;;) {
      const Word& word = now();
      if (word.kind == Kind::text) {
        block.push_back({Statement::Kind::text, word.line, word.text});
        ++at_;
      } else if (word.kind == Kind::print_begin) {
        ++at_;
        block.push_back({Statement::Kind::print, word.line});
        block.back().expression = tuple_or_expression();
        if (now().kind != Kind::print_end) unexpected("'}}'");
        ++at_;
      } else if (word.kind == Kind::tag_begin) {
        ++at_;
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); })) return block;
        block.push_back(tag());
      } else {
        if (ends.size() > 0) unexpected("'{% " + std::string(*(ends.end() - 1)) + " %}'");
        return block;
      }
    }
  }

  Statement tag() {
    const int line = now().line;
    const std::string name = identifier();
    if (name == "if") return choice(line);
    if (name == "for") return loop(line);
    if (name == "set") return assignment(line);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) refuse(line, "a loop around '" + name + "'", "none");
      end_tag();
      return {name == "break" ? Statement::Kind::leave : Statement::Kind::go_on, line};
    }
    if (name == "generation") return generation(line);
    refuse_unsupported(line, "the tag '" + name + "'");
  }

  Statement choice(int line) {
    Statement result{Statement::Kind::choice, line};
    ExpressionPointer condition = tuple_or_expression(false);
    for (;;) {
      end_tag();
      const bool last = condition == nullptr;
      Block body = last ? statements({"endif"}) : statements({"elif", "else", "endif"});
      result.branches.push_back({std::move(condition), std::move(body)});
      const std::string end = identifier();
      if (end == "endif") break;
      if (end == "elif") condition = tuple_or_expression(false);
    }
    end_tag();
    return result;
  }

  Statement loop(int line) {
    Statement result{Statement::Kind::loop, line};
    result.names = targets();
    expect_name("in");
    result.expression = tuple_or_expression(false);
    if (skip_name("if")) result.condition = expression();
    if (is_name("recursive")) refuse_unsupported(line, "a recursive loop");
    end_tag();
    ++loops_;
    result.branches.push_back({nullptr, statements({"else", "endfor"})});
    --loops_;
    if (skip_name("else")) {
      end_tag();
      result.branches.push_back({nullptr, statements({"endfor"})});
    }
    expect_name("endfor");
    end_tag();
    return result;
  }

  // a, b or (a, b)
  std::vector<std::string> targets() {
    std::vector<std::string> names;
    const bool bracket = skip_sign("(");
    do names.push_back(target());
    while (skip_sign(",") && now().kind == Kind::name && !is_name("in"));
    if (bracket) expect_sign(")");
    return names;
  }
  std::string target() {
    const Word& word = now();
    std::string name = identifier();
    constexpr std::array<std::string_view, 6> constants = {"true", "false", "none", "True", "False", "None"};
    if (std::find(constants.begin(), constants.end(), name) != constants.end())
      refuse(word.line, "a name to assign to", "'" + name + "'");
    return name;
  }

  Statement assignment(int line) {
    Statement result{Statement::Kind::set, line};
    result.names = targets();
    if (skip_sign(".")) {
      result.kind = Statement::Kind::set_member;
      result.names.push_back(identifier());
      if (result.names.size() != 2) refuse_unsupported(line, "an assignment to a member and other targets");
    }
    if (skip_sign("=")) {
      result.expression = tuple_or_expression();
      end_tag();
      return result;
    }
    if (is_sign("|")) refuse_unsupported(line, "a block assignment through a filter");
    if (result.kind == Statement::Kind::set_member || result.names.size() != 1) unexpected("'='");
    result.kind = Statement::Kind::set_block;
    end_tag();
    result.branches.push_back({nullptr, statements({"endset"})});
    expect_name("endset");
    end_tag();
    return result;
  }

  // {% generation %} marks text for training in transformers and prints its body.
  Statement generation(int line) {
    Statement result{Statement::Kind::group, line};
    end_tag();
    const int outer_loops = std::exchange(loops_, 0);
    result.branches.push_back({nullptr, statements({"endgeneration"})});
    loops_ = outer_loops;
    expect_name("endgeneration");
    end_tag();
    return result;
  }

  void end_tag() {
    if (now().kind != Kind::tag_end) unexpected("'%}'");
    ++at_;
  }

  int loops_ = 0;
};

}  // namespace typeformer
