/// Races in shared memory: two threads touch the same bytes, one of them writes, and nothing orders them.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "module.hpp"

namespace ptx {

/// By warp, the last moment that happened before.
using Clock = std::vector<u32>;

/// A clock for each warp. Barriers join clocks, an mbarrier's arrivals release and its waits acquire them; lanes of a
/// warp are ordered by bar.warp.sync. Does not depend on the order in which the interpreter runs warps.
class Races {
 public:
  bool atomic = false;  // the accesses that follow are an atomic's

  void reset(bool check, u32 warps, u64 bytes) {
    on_ = check;
    if (!on_) return;
    warps_ = warps;
    now_.assign(warps, 1);
    seen_.assign(warps, Clock(warps));
    lane_order_.assign(warps, 1);
    writes_.assign(bytes / 2 + 1, Write{});
    reads_.assign((bytes / 2 + 1) * warps, Read{});
  }
  void release(u32 warp, Clock& to) {
    if (!on_) return;
    join(to, seen_[warp]);
    to[warp] = std::max(to[warp], now_[warp]++);
  }
  void acquire(u32 warp, const Clock& from) {
    if (on_) join(seen_[warp], from);
  }
  void order_lanes(u32 warp) {
    if (on_) ++lane_order_[warp];
  }
  /// What a copy brought has no writer that others race with.
  void forget(u64 offset, u32 bytes) {
    if (!on_) return;
    for (u64 cell = offset / 2; cell <= (offset + bytes - 1) / 2; ++cell) writes_[cell] = Write{};
  }
  /// Notes an access and says what it races with; nothing when it races with nothing.
  std::string touch(u32 warp, u32 lane, u64 offset, u32 bytes, bool write) {
    if (!on_) return {};
    for (u64 cell = offset / 2; cell <= (offset + bytes - 1) / 2; ++cell) {
      Write& last = writes_[cell];
      const u32 writer = last.thread / 32;
      const bool ordered = writer != warp ? last.time <= seen_[warp][writer]
                                          : last.thread % 32 == lane || last.lane_order != lane_order_[warp];
      if (last.time && !ordered && !(atomic && last.atomic))
        return (write ? "write after write by thread " : "read after write by thread ") + std::to_string(last.thread);
      if (!write) {
        reads_[cell * warps_ + warp] = {now_[warp], lane_order_[warp], static_cast<u8>(lane)};
        continue;
      }
      for (u32 reader = 0; reader < warps_ && !atomic; ++reader) {
        const Read& read = reads_[cell * warps_ + reader];
        const bool after = reader != warp ? read.time <= seen_[warp][reader]
                                          : read.lane == lane || read.lane_order != lane_order_[warp];
        if (read.time && !after) return "write after read by thread " + std::to_string(reader * 32 + read.lane);
      }
      last = {now_[warp], lane_order_[warp], static_cast<u16>(warp * 32 + lane), atomic};
    }
    return {};
  }

 private:
  struct Write {
    u32 time = 0, lane_order = 0;
    u16 thread = 0;
    bool atomic = false;
  };
  struct Read {
    u32 time = 0, lane_order = 0;
    u8 lane = 0;
  };
  static void join(Clock& to, const Clock& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
  }

  bool on_ = false;
  u32 warps_ = 0;
  Clock now_;
  std::vector<Clock> seen_;
  std::vector<u32> lane_order_;
  std::vector<Write> writes_;  // by two bytes
  std::vector<Read> reads_;    // by two bytes and warp
};

}  // namespace ptx
