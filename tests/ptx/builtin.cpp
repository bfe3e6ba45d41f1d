// Device functions that the driver provides: assertions and printf.
#include <cstdio>

#include "loader.hpp"

namespace ptx {
namespace {

u64 parameter(Warp& warp, const Instruction& instruction, int index, int lane, u32 bytes) {
  u64 value = 0;
  const u64 address = warp.get(instruction.operands[index], lane);
  std::memcpy(&value, warp.block->access(warp, instruction, lane, Space::local, address, bytes, false), bytes);
  return value;
}
std::string text_at(u64 address) { return reinterpret_cast<const char*>(address); }

void execute_assert(Warp& warp, const Instruction& instruction, u32 mask) {
  const int lane = first_lane(mask);
  warp.fail(instruction, lane,
            "assertion failed: " + text_at(parameter(warp, instruction, 0, lane, 8)) + " (" +
                text_at(parameter(warp, instruction, 1, lane, 8)) + ":" +
                std::to_string(parameter(warp, instruction, 2, lane, 4)) + ")");
}

/// One `%...` of a format and its argument in the buffer at `from`, which moves on.
std::string format_one(Warp& warp, const Instruction& instruction, int lane, const std::string& format, u64& from) {
  const char kind = format.back();
  const bool is_float = std::strchr("fFeEgGaA", kind) != nullptr;
  const bool wide = is_float || kind == 's' || kind == 'p' || format.find('l') != format.npos;
  const u32 bytes = wide ? 8 : 4;
  from = (from + bytes - 1) / bytes * bytes;
  u64 word = 0;
  std::memcpy(&word, warp.block->access(warp, instruction, lane, Space::generic, from, bytes, false), bytes);
  from += bytes;
  char text[400];
  if (is_float)
    std::snprintf(text, sizeof text, format.c_str(), bits<double>(word));
  else if (kind == 's')
    std::snprintf(text, sizeof text, format.c_str(), reinterpret_cast<const char*>(word));
  else if (wide)
    std::snprintf(text, sizeof text, format.c_str(), static_cast<unsigned long long>(word));
  else
    std::snprintf(text, sizeof text, format.c_str(), static_cast<u32>(word));
  return text;
}

void execute_print(Warp& warp, const Instruction& instruction, u32 mask) {
  for (const int lane : Lanes(mask)) {
    const std::string format = text_at(parameter(warp, instruction, 0, lane, 8));
    u64 from = parameter(warp, instruction, 1, lane, 8);
    std::string out;
    for (std::size_t at = 0; at < format.size();) {
      if (format[at] != '%' || format.compare(at, 2, "%%") == 0) {
        out += format[at];
        at += format[at] == '%' ? 2 : 1;
        continue;
      }
      const std::size_t end = format.find_first_of("diouxXcsfFeEgGaAp", at);
      if (end == format.npos) break;
      out += format_one(warp, instruction, lane, format.substr(at, end + 1 - at), from);
      at = end + 1;
    }
    std::fputs(out.c_str(), stdout);
    if (instruction.count < 3) continue;
    const u64 result = warp.get(instruction.operands[2], lane);
    std::memset(warp.block->access(warp, instruction, lane, Space::local, result, 4, true), 0, 4);
  }
}

}  // namespace

Execute find_builtin(const std::string& name) {
  if (name == "__assertfail") return execute_assert;
  return name == "vprintf" ? execute_print : nullptr;
}

}  // namespace ptx
