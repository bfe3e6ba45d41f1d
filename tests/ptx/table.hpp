/// Instructions that do the same in every lane: a name and a function of one lane's operands.
#pragma once
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "machine.hpp"
#include "numbers.hpp"

namespace ptx {

/// How an instruction is executed, and how many bytes its operands have; the first one is the result.
struct Entry {
  Execute execute = nullptr;
  int count = 0;
  u8 widths[5] = {};
};

/// By name without .ftz.
class Table {
 public:
  // Not inlined: the table would take minutes to compile.
  [[gnu::noinline]] Entry& operator()(const char* a, const char* b = "", const char* c = "", const char* d = "") {
    return entries_[std::string(a) + b + c + d];
  }
  const Entry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const auto& all() const { return entries_; }

 private:
  std::unordered_map<std::string, Entry> entries_;
};

const Table& table();
void add_integers(Table& table);
void add_floats(Table& table);
void add_halves(Table& table);
void add_bits(Table& table);
void add_conversions(Table& table);

// --- from a function of one lane to an instruction ------------------------------------------------------------------

template <class T>
T read_lane(const Warp& warp, const Slot& slot, int lane) {
  const u64 word = warp.get(slot, lane);
  T value;
  if constexpr (std::is_same_v<T, bool>)
    value = word & 1;
  else
    std::memcpy(&value, &word, sizeof(T));
  return value;
}
template <class T>
void write_lane(Warp& warp, const Slot& slot, int lane, T value) {
  u64 word = 0;
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
    word = static_cast<u64>(static_cast<s64>(value));
  else
    std::memcpy(&word, &value, sizeof(T));
  warp.put(slot, lane, word);
}

template <auto function, class Result, class... Arguments, std::size_t... index>
void execute_lanes(Warp& warp, const Instruction& instruction, u32 mask, std::index_sequence<index...>) {
  const Slot* slots = instruction.operands;
  if (instruction.flush) {
    for (const int lane : Lanes(mask))
      write_lane<Result>(warp, slots[0], lane,
                         flush(function(flush(read_lane<Arguments>(warp, slots[1 + index], lane))...)));
    return;
  }
  if (instruction.widths_differ) {
    for (const int lane : Lanes(mask))
      write_lane<Result>(warp, slots[0], lane, function(read_lane<Arguments>(warp, slots[1 + index], lane)...));
    return;
  }
  Result* results = warp.data<Result>(slots[0]);
  const std::tuple<const Arguments*...> arguments{warp.data<Arguments>(slots[1 + index])...};
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (u32 lane = 0; lane < warp_size; ++lane) results[lane] = function(std::get<index>(arguments)[lane]...);
  } else {
    for (const int lane : Lanes(mask)) results[lane] = function(std::get<index>(arguments)[lane]...);
  }
}
template <auto function, class Result, class... Arguments>
void execute_in_lanes(Warp& warp, const Instruction& instruction, u32 mask) {
  execute_lanes<function, Result, Arguments...>(warp, instruction, mask, std::index_sequence_for<Arguments...>{});
}
template <auto function, class Result, class... Arguments>
Entry make_entry(Result (*)(Arguments...)) {
  return {&execute_in_lanes<function, Result, Arguments...>,
          1 + static_cast<int>(sizeof...(Arguments)),
          {sizeof(Result), sizeof(Arguments)...}};
}
template <auto function>
Entry lanes() {
  return make_entry<function>(+function);
}

/// setp.<comparison>.<type>; value: from what is stored to what is compared. Forms with a second result or a boolean
/// operation are several instructions.
template <class T, auto value>
void add_comparisons(Table& table, const char* type, bool of_floats) {
  const auto add = [&]<auto holds>(const char* comparison) {
    table("setp.", comparison, ".", type) = lanes<[](T a, T b) -> bool { return holds(value(a), value(b)); }>();
  };
  add.template operator()<[](auto a, auto b) { return a == b; }>("eq");
  add.template operator()<[](auto a, auto b) { return a < b || b < a; }>("ne");
  add.template operator()<[](auto a, auto b) { return a < b; }>("lt");
  add.template operator()<[](auto a, auto b) { return a <= b; }>("le");
  add.template operator()<[](auto a, auto b) { return b < a; }>("gt");
  add.template operator()<[](auto a, auto b) { return a >= b; }>("ge");
  if (!of_floats) {
    add.template operator()<[](auto a, auto b) { return a < b; }>("lo");
    add.template operator()<[](auto a, auto b) { return a <= b; }>("ls");
    add.template operator()<[](auto a, auto b) { return b < a; }>("hi");
    add.template operator()<[](auto a, auto b) { return a >= b; }>("hs");
    return;
  }
  add.template operator()<[](auto a, auto b) { return !(a < b || b < a); }>("equ");
  add.template operator()<[](auto a, auto b) { return !(a == b); }>("neu");
  add.template operator()<[](auto a, auto b) { return !(a >= b); }>("ltu");
  add.template operator()<[](auto a, auto b) { return !(b < a); }>("leu");
  add.template operator()<[](auto a, auto b) { return !(a <= b); }>("gtu");
  add.template operator()<[](auto a, auto b) { return !(a < b); }>("geu");
  add.template operator()<[](auto a, auto b) { return a == a && b == b; }>("num");
  add.template operator()<[](auto a, auto b) { return a != a || b != b; }>("nan");
}

}  // namespace ptx
