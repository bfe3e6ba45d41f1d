/// The syntax tree of a chat template.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/text/jinja/value.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

/// A named argument of a call.
struct NamedArgument {
  std::string name;
  ExpressionPointer value;
};

/// One expression. Which fields count depends on the kind.
struct Expression {
  enum class Kind {
    literal,      ///< value
    name,         ///< text
    attribute,    ///< first . text
    item,         ///< first [ children[0] ]
    slice,        ///< first [ children[0] : children[1] : children[2] ], each may be null
    call,         ///< first ( children, named )
    filter,       ///< first | text ( children, named )
    test,         ///< first is text ( children )
    negation,     ///< not first
    sign,         ///< text (+ or -) first
    binary,       ///< first text children[0], for + - * / // % ~
    both,         ///< first and children[0]
    either,       ///< first or children[0]
    comparison,   ///< first operators[0] children[0] operators[1] children[1] ...
    conditional,  ///< first if children[0] else children[1] (may be null)
    list,         ///< [ children ]
    tuple,        ///< ( children )
    dict          ///< { children[0] : children[1], ... }
  };
  Kind kind;
  int line = 1;
  std::string text = {};
  Value value = {};
  ExpressionPointer first = {};
  std::vector<ExpressionPointer> children = {};
  std::vector<NamedArgument> named = {};
  std::vector<std::string> operators = {};
  std::size_t depth = 1;
};

struct Statement;
using Block = std::vector<Statement>;

/// A condition and what happens when it holds; without a condition: always.
struct Branch {
  ExpressionPointer condition;
  Block body;
};

/// One statement. Which fields count depends on the kind.
struct Statement {
  enum class Kind {
    text,        ///< prints text
    print,       ///< prints expression
    choice,      ///< the first of branches whose condition holds
    loop,        ///< for names in expression if condition: branches[0], when nothing came: branches[1]
    set,         ///< names = expression
    set_member,  ///< names[0].names[1] = expression
    set_block,   ///< names = what branches[0] prints
    leave,       ///< ends the innermost loop
    go_on,       ///< next turn of the innermost loop
    group        ///< branches[0]
  };
  Kind kind;
  int line = 1;
  std::string text = {};
  ExpressionPointer expression = {}, condition = {};
  std::vector<std::string> names = {};
  std::vector<Branch> branches = {};
};

/// A whole template.
struct Template {
  Block body;
};

}  // namespace typeformer
