/// Renders a syntax tree with variables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/library.hpp"
#include "typeformer/text/jinja/operations.hpp"
#include "typeformer/text/jinja/syntax.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

/// One rendering. Throws Error naming the line where the template cannot go on or exceeds its budget.
class Evaluator {
 public:
  Evaluator(Value::Dict variables, Budget budget) : budget_(budget) { scopes_.push_back(std::move(variables)); }

  std::string render(const Block& block) {
    std::string out;
    run(block, out);
    return out;
  }

 private:
  enum class Flow { on, next_turn, leave_loop };

  // --- statements ---

  Flow run(const Block& block, std::string& out) {
    for (const Statement& statement : block) {
      if (const Flow flow = run(statement, out); flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow run(const Statement& statement, std::string& out) {
    const int line = statement.line;
    budget_.charge(1, line);
    switch (statement.kind) {
      case Statement::Kind::text:
        print(statement.text, out, line);
        break;
      case Statement::Kind::print:
        print(to_text(value(*statement.expression), line), out, line);
        break;
      case Statement::Kind::choice:
        for (const Branch& branch : statement.branches) {
          if (branch.condition == nullptr || value(*branch.condition).truth()) return run(branch.body, out);
        }
        break;
      case Statement::Kind::loop:
        return loop(statement, out);
      case Statement::Kind::set:
        assign(statement.names, value(*statement.expression), line);
        break;
      case Statement::Kind::set_member:
        set_member(statement);
        break;
      case Statement::Kind::set_block: {
        std::string text;
        scopes_.emplace_back();
        run(statement.branches[0].body, text);
        scopes_.pop_back();
        assign(statement.names, Value(std::move(text)), line);
        break;
      }
      case Statement::Kind::leave:
        return Flow::leave_loop;
      case Statement::Kind::go_on:
        return Flow::next_turn;
      case Statement::Kind::group: {
        scopes_.emplace_back();
        run(statement.branches[0].body, out);
        scopes_.pop_back();
        break;
      }
    }
    return Flow::on;
  }

  void print(std::string_view text, std::string& out, int line) {
    budget_.charge(text.size(), line);
    out += text;
  }

  Flow loop(const Statement& statement, std::string& out) {
    const int line = statement.line;
    std::vector<Value> items = iterate(value(*statement.expression), {budget_, line});
    if (statement.condition != nullptr) items = chosen(statement, std::move(items));
    auto state = std::make_shared<const std::vector<Value>>(std::move(items));
    bool completed = false;  // Jinja takes 'else' also when every turn was cut short by break or continue
    for (std::size_t i = 0; i < state->size(); ++i) {
      budget_.charge(Budget::element, line);
      scopes_.emplace_back();
      assign(statement.names, (*state)[i], line);
      scopes_.back().set("loop", std::make_shared<const Value::Loop>(Value::Loop{state, i}));
      const Flow flow = run(statement.branches[0].body, out);
      scopes_.pop_back();
      completed = completed || flow == Flow::on;
      if (flow == Flow::leave_loop) break;
    }
    return !completed && statement.branches.size() > 1 ? run(statement.branches[1].body, out) : Flow::on;
  }
  std::vector<Value> chosen(const Statement& statement, std::vector<Value> items) {
    std::vector<Value> out;
    for (Value& item : items) {
      scopes_.emplace_back();
      assign(statement.names, item, statement.line);
      if (value(*statement.condition).truth()) out.push_back(std::move(item));
      scopes_.pop_back();
    }
    return out;
  }

  void assign(const std::vector<std::string>& names, Value value, int line) {
    budget_.charge(names.size() * (1 + scopes_.back().items.size()), line);
    if (names.size() == 1) return scopes_.back().set(names[0], std::move(value));
    const std::vector<Value> parts = iterate(value, {budget_, line});
    if (parts.size() != names.size())
      refuse(line, std::to_string(names.size()) + " values to assign", std::to_string(parts.size()));
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.back().set(names[i], parts[i]);
  }
  void set_member(const Statement& statement) {
    const Value target = look_up(statement.names[0], statement.line);
    if (target.name_space() == nullptr) refuse(statement.line, "a namespace to assign to", target.kind());
    const Value member = value(*statement.expression);
    make_list({member}, statement.line);  // refuses what a namespace must not hold
    budget_.charge(target.name_space()->members.items.size(), statement.line);
    target.name_space()->members.set(statement.names[1], member);
  }

  // --- expressions ---

  Value look_up(const std::string& name, int line) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      budget_.charge(scope->items.size(), line);
      if (const Value* found = scope->find(name)) return *found;
    }
    if (is_function(name)) return Value::Function{name};
    return Value::Undefined{"'" + name + "'"};
  }

  Value value(const Expression& node) {
    using Kind = Expression::Kind;
    budget_.charge(1, node.line);
    const Site site{budget_, node.line};
    switch (node.kind) {
      case Kind::literal:
        return node.value;
      case Kind::name:
        return look_up(node.text, node.line);
      case Kind::attribute:
        return attribute(value(*node.first), node.text, site);
      case Kind::item:
        return item(value(*node.first), value(*node.children[0]), site);
      case Kind::slice:
        return slice(node, site);
      case Kind::call:
        return call(node);
      case Kind::filter:
        return filter(node, site);
      case Kind::test:
        return test(node, site);
      case Kind::negation:
        return Value(!value(*node.first).truth());
      case Kind::sign:
        return signed_number(node);
      case Kind::binary: {
        const Value left = value(*node.first);
        return binary(node.text, left, value(*node.children[0]), site);
      }
      case Kind::both: {
        Value left = value(*node.first);
        return left.truth() ? value(*node.children[0]) : left;
      }
      case Kind::either: {
        Value left = value(*node.first);
        return left.truth() ? left : value(*node.children[0]);
      }
      case Kind::comparison:
        return comparison(node, site);
      case Kind::conditional: {
        if (value(*node.children[0]).truth()) return value(*node.first);
        if (node.children[1] != nullptr) return value(*node.children[1]);
        return Value::Undefined{"the result of an 'if' without 'else'"};
      }
      case Kind::list:
        return make_list(values(node.children), node.line);
      case Kind::tuple:
        return make_list(values(node.children), node.line, true);
      case Kind::dict:
        return dict(node);
    }
    return {};
  }

  std::vector<Value> values(const std::vector<ExpressionPointer>& nodes) {
    std::vector<Value> out;
    for (const ExpressionPointer& node : nodes) out.push_back(value(*node));
    return out;
  }

  Value dict(const Expression& node) {
    Value::Dict out;
    for (std::size_t i = 0; i < node.children.size(); i += 2) {
      const Value key = value(*node.children[i]);
      if (key.string() == nullptr) refuse_unsupported(node.line, "a key that is no string");
      budget_.charge(out.items.size(), node.line);
      out.set(*key.string(), value(*node.children[i + 1]));
    }
    return make_dict(std::move(out), node.line);
  }

  Value comparison(const Expression& node, Site site) {
    Value left = value(*node.first);
    for (std::size_t i = 0; i < node.operators.size(); ++i) {
      Value right = value(*node.children[i]);
      if (!compare(node.operators[i], left, right, site)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }

  Value signed_number(const Expression& node) {
    const Value operand = value(*node.first);
    require_defined(operand, node.line);
    std::int64_t number = 0;
    if (operand.integer(number) != nullptr) return integer_operation(node.text[0], 0, number, node.line);
    if (!operand.is_number()) refuse(node.line, "a number behind the sign", operand.kind());
    return Value(node.text == "-" ? -operand.real() : operand.real());
  }

  Value slice(const Expression& node, Site site) {
    const Value container = value(*node.first);
    const auto bound = [&](const ExpressionPointer& part) -> std::optional<std::int64_t> {
      if (part == nullptr) return std::nullopt;
      const Value limit = value(*part);
      std::int64_t number = 0;
      if (limit.is_none()) return std::nullopt;
      if (limit.integer(number) == nullptr) refuse(node.line, "integers in a slice", limit.kind());
      return number;
    };
    const auto start = bound(node.children[0]), stop = bound(node.children[1]), step = bound(node.children[2]);
    return slice_of(container, start, stop, step.value_or(1), site);
  }

  // object.name: an attribute first, then a member.
  Value attribute(const Value& object, const std::string& name, Site site) {
    require_defined(object, site.line);
    if (object.loop() != nullptr) return loop_attribute(*object.loop(), name, site.line);
    if (const Value::Namespace* members = object.name_space()) {
      const Value* found = members->members.find(name);
      return found != nullptr ? *found : Value::Undefined{"the attribute '" + name + "'"};
    }
    if (const auto method = python_method(object, name)) {
      return *method ? Value(Value::Function{name}) : Value(Value::Undefined{"the attribute '" + name + "'"});
    }
    const Value* found = object.dict() != nullptr ? object.dict()->find(name) : nullptr;
    return found != nullptr ? *found : Value::Undefined{"the attribute '" + name + "'"};
  }
  // object[index]: a member first, then an attribute.
  Value item(const Value& object, const Value& index, Site site) {
    const bool member =
        object.dict() != nullptr && index.string() != nullptr && object.dict()->find(*index.string()) != nullptr;
    if (index.string() != nullptr && !member) return attribute(object, *index.string(), site);
    return item_of(object, index, site);
  }
  static Value loop_attribute(const Value::Loop& loop, std::string_view name, int line) {
    const auto index = static_cast<std::int64_t>(loop.index0), length = static_cast<std::int64_t>(loop.items->size());
    if (name == "index0") return Value(index);
    if (name == "index") return Value(index + 1);
    if (name == "first") return Value(index == 0);
    if (name == "last") return Value(index + 1 == length);
    if (name == "length") return Value(length);
    if (name == "revindex") return Value(length - index);
    if (name == "revindex0") return Value(length - index - 1);
    if (name == "previtem")
      return index > 0 ? (*loop.items)[loop.index0 - 1] : Value(Value::Undefined{"'loop.previtem' of the first turn"});
    if (name == "nextitem")
      return index + 1 < length ? (*loop.items)[loop.index0 + 1]
                                : Value(Value::Undefined{"'loop.nextitem' of the last turn"});
    refuse_unsupported(line, "'loop." + std::string(name) + "'");
  }

  void evaluate_arguments(const Expression& node, Arguments& in) {
    in.positional = values(node.children);
    for (const NamedArgument& argument : node.named) in.named.emplace_back(argument.name, value(*argument.value));
  }

  Value call(const Expression& node) {
    const Expression& callee = *node.first;
    Arguments in("'" + callee.text + "()'", {budget_, node.line});
    if (callee.kind == Expression::Kind::attribute) {
      const Value object = value(*callee.first);
      require_defined(object, node.line);
      evaluate_arguments(node, in);
      std::optional<Value> result;
      if (const std::string* text = object.string()) {
        budget_.charge(text->size(), node.line);
        result = string_method(*text, callee.text, in);
      } else if (const Value::Dict* members = object.dict()) {
        budget_.charge(members->items.size(), node.line);
        result = dict_method(*members, callee.text, in);
      }
      if (!result) refuse_unsupported(node.line, "the method '" + callee.text + "' of " + std::string(object.kind()));
      in.finish();
      return *result;
    }
    const Value function = value(callee);
    require_defined(function, node.line);
    const auto* known = function.get_if<Value::Function>();
    if (known == nullptr) refuse(node.line, "a function to call", function.kind());
    evaluate_arguments(node, in);
    Value result = call_function(known->name, in);
    in.finish();
    return result;
  }

  Value filter(const Expression& node, Site site) {
    const Value operand = value(*node.first);
    Arguments in("the filter '" + node.text + "'", site);
    evaluate_arguments(node, in);
    Value result = apply_filter(node.text, operand, in);
    in.finish();
    return result;
  }
  Value test(const Expression& node, Site site) {
    const Value operand = value(*node.first);
    Arguments in("the test '" + node.text + "'", site);
    evaluate_arguments(node, in);
    const bool result = apply_test(node.text, operand, in);
    in.finish();
    return Value(result);
  }

  Budget budget_;
  std::vector<Value::Dict> scopes_;
};

}  // namespace typeformer
