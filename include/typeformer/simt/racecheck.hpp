/// The race checker. Kernels are compiled with -fsanitize=thread, whose __tsan_* calls end in tsan_interface.hpp
/// instead of the compiler's runtime: every load and store arrives with its address, size and place. Included, through
/// tsan_interface.hpp, by exactly one file that is compiled without -fsanitize=thread; nothing is linked with it
/// either.
///
/// Two accesses to one location race when one writes, not both are atomic, and nothing orders them: __syncthreads in a
/// block, __syncwarp in a warp (shuffles order no memory), between blocks a __threadfence followed by an atomic
/// operation that the other block's atomic on the same address follows. The answer does not depend on the order of
/// execution. Operations of different streams race likewise (stream_order.hpp). Also found: reads of shared bytes that
/// nobody wrote, use of cp.async data in flight, accesses outside every array.
#pragma once
#include <sys/mman.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "typeformer/simt/counting.hpp"
#include "typeformer/simt/source_line.hpp"
#include "typeformer/simt/stream_order.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// The last accesses to a byte (in global memory to two, unless a kernel uses bytes). Blocks have unique numbers: 0 is
/// none.
struct Shadow {
  std::uint32_t writer_block, writer_epoch, writer_turn, writer_origin;
  std::uint32_t reader_block, reader_epoch, reader_turn, reader_lanes, reader_origin;
  std::uint16_t writer_thread, reader_warp;  // reader_warp 0xffff: several
  bool atomic, in_flight, several_blocks;    // several_blocks: read by more than one block of the reader's launch
};

/// Zeroed shadow of a piece of memory; pages that are never touched cost nothing.
class ShadowArray {
 public:
  explicit ShadowArray(std::size_t count) : bytes_(std::max<std::size_t>(count, 1) * sizeof(Shadow)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error("simt", "race checker", "memory for its shadow", "none left");
    cells_ = static_cast<Shadow*>(memory);
  }
  ShadowArray(const ShadowArray&) = delete;
  ShadowArray& operator=(const ShadowArray&) = delete;
  ~ShadowArray() { munmap(cells_, bytes_); }
  Shadow& operator[](std::size_t index) { return cells_[index]; }

 private:
  std::size_t bytes_;
  Shadow* cells_;
};

/// Who makes an access now.
struct Accessor {
  Lane& lane;
  std::uint32_t block, epoch, turn, launch_first, origin;
  bool write, atomic;
};

/// Up to which barrier epoch a block published its writes, and the thread that did.
struct Publication {
  std::uint32_t epoch = 0, thread = 0;
};
using Publications = std::unordered_map<std::uint32_t, Publication>;  // by block

class RaceChecker {
 public:
  // ---- places: an instruction's address, or a line that the layer was told
  std::uint32_t origin_of(const void* address) {
    auto& recent = recent_[reinterpret_cast<std::uintptr_t>(address) >> 1 & 1023u];
    if (recent.first == address) return recent.second;
    auto [found, added] = address_origin_.try_emplace(address, static_cast<std::uint32_t>(origins_.size()));
    if (added) origins_.push_back({address, Place{}});
    recent = {address, found->second};
    return found->second;
  }
  std::uint32_t origin_of(Place place) {
    auto [found, added] =
        place_origin_.try_emplace({place.file, place.line}, static_cast<std::uint32_t>(origins_.size()));
    if (added) origins_.push_back({nullptr, place});
    return found->second;
  }
  const std::string& describe(std::uint32_t origin) {
    const Origin& it = origins_[origin];
    std::string& text = described_[origin];
    if (text.empty())
      text = it.address ? source_line(it.address) : std::string(message("%s:%d", it.place.name(), it.place.line).text);
    return text;
  }

  // ---- memory
  void allocate(const void* address, std::size_t bytes) {
    const auto* first = static_cast<const char*>(address);
    allocations_.try_emplace(first + bytes, std::make_unique<Allocation>(first, bytes));
    last_ = nullptr;
  }
  void release(const void* address) {
    last_ = nullptr;
    std::erase_if(allocations_, [&](const auto& item) {
      if (item.second->first != address) return false;
      order_.release(address, item.second->bytes);
      return true;
    });
  }

  // ---- accesses
  void access(const void* pointer, std::size_t bytes, bool write, bool atomic, std::uint32_t origin, bool counted) {
    Lane& lane = *current_lane;
    const Block& block = *lane.block;
    const auto* first = static_cast<const char*>(pointer);
    const Accessor by{lane,
                      block_number(block),
                      block.barrier_epoch,
                      turn_[lane.warp->index],
                      static_cast<std::uint32_t>(block.launch_first),
                      origin,
                      write,
                      atomic};
    if (first >= block.arena && first < block.arena + Block::arena_bytes) {
      if (!inside_shared(block, first, bytes))
        return note_bounds("shared", by, bytes, first - (block.arena + first_byte));
      const auto offset = static_cast<std::size_t>(first - block.arena);
      for (std::size_t i = 0; i < bytes; ++i) check(shared_[offset + i], by, true, offset + i - first_byte);
      if (counted && options().counters) counter_->add(origin, lane, first, bytes, write, true);
      return;
    }
    Allocation* allocation = find_allocation(first);
    if (!allocation && !runtime().memory.contains(first)) return;  // the thread's own stack, constants
    if (!allocation) allocation = allocation_before(first);
    if (!allocation) return note(by, "out-of-bounds access", "", message("%zu bytes of no live allocation", bytes));
    const auto offset = static_cast<std::size_t>(first - allocation->first);
    if (!order_.concurrent().empty()) check_spans(by, first, bytes, offset);
    if (offset + bytes > allocation->bytes)
      return note(by, "out-of-bounds access", "",
                  message("%zu bytes at byte %zu of an allocation of %zu bytes", bytes, offset, allocation->bytes));
    if (allocation->grain == 2 && (bytes == 1 || offset % 2)) allocation->refine();
    const std::size_t grain = allocation->grain;
    for (std::size_t cell = offset / grain; cell * grain < offset + bytes; ++cell)
      check((*allocation->shadow)[cell], by, false, cell * grain);
    if (counted && options().counters) counter_->add(origin, lane, first, bytes, write, false);
  }

  /// An instruction whose address is not a multiple of its size. Stacks are the host's and may be laid out as it likes.
  void misaligned(const void* pointer, std::size_t bytes, std::uint32_t origin) {
    const Block& block = *current_lane->block;
    const auto* first = static_cast<const char*>(pointer);
    const bool shared = first >= block.arena && first < block.arena + Block::arena_bytes;
    if (!shared && !runtime().memory.contains(first)) return;
    const Accessor by{*current_lane, 0, 0, 0, 0, origin, false, false};
    note(by, "misaligned access", "",
         message("%zu bytes at %p of %s memory", bytes, pointer, shared ? "shared" : "global"));
  }

  /// Marks the destination of an asynchronous copy, which its issue or its arrival has just written.
  void set_in_flight(const Block& block, const void* pointer, std::size_t bytes, bool value) {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - block.arena);
    for (std::size_t i = 0; i < bytes; ++i) shared_[offset + i].in_flight = value;
  }
  void settle(const Block& block, const void* pointer, std::size_t bytes) {
    set_in_flight(block, pointer, bytes, false);
  }

  // ---- streams
  void begin_kernel(std::uint64_t first, std::uint64_t blocks) {
    const Performed& now = runtime().performed;
    if (now.operation) order_.begin(*now.operation, *now.stamp, first, blocks);
    counter_ = &counters_[now.operation ? now.operation->kernel : nullptr];
  }
  /// An operation whose memory is known beforehand is checked as a whole.
  void begin_operation(const Operation& operation, const Stamp& stamp, bool outermost) {
    if (outermost) order_.forget(stamp);
    if (operation.work == Work::kernel || operation.spans.empty()) return;
    order_.begin(operation, stamp, 0, 0);
    for (const auto& past : order_.concurrent())
      for (const Span& span : operation.spans) check_operation(operation, span, *past);
  }

  // ---- order
  void begin_block(const Block& block) {
    for (unsigned i = 0; i < block.warp_count; ++i) {
      turn_[i] = 0;
      std::memset(seen_[i], 0, sizeof seen_[i]);
    }
    acquired_.clear();
    fenced_ = false;
    if (launch_ != block.launch_first) published_.clear();
    launch_ = block.launch_first;
  }
  void end_block() { counter_->end_block(); }

  /// After a __syncwarp each lane of the mask sees what any of them did or had seen.
  void sync_warp(const Warp& warp, unsigned mask) {
    auto& seen = seen_[warp.index];
    const std::uint32_t turn = ++turn_[warp.index];
    std::uint32_t merged[32] = {};
    for (unsigned rest = mask; rest; rest &= rest - 1)
      for (unsigned k = 0; k < 32; ++k) merged[k] = std::max(merged[k], seen[std::countr_zero(rest)][k]);
    for (unsigned rest = mask; rest; rest &= rest - 1) merged[std::countr_zero(rest)] = turn;
    for (unsigned rest = mask; rest; rest &= rest - 1) std::memcpy(seen[std::countr_zero(rest)], merged, sizeof merged);
  }
  void fence(const Block& block) {
    fenced_ = true;
    fence_epoch_ = block.barrier_epoch;
  }
  /// An atomic operation takes over what other blocks published at the address, and publishes what was fenced before.
  void synchronize(const Lane& lane, const void* address) {
    const Block& block = *lane.block;
    Publications& here = published_[address];
    for (const auto& [other, publication] : here) {
      Publication& known = acquired_[other];
      if (publication.epoch >= known.epoch) known = publication;
    }
    if (fenced_) here[block_number(block)] = {std::min(block.barrier_epoch, fence_epoch_ + 1), lane.id};
  }

  // ---- results
  bool take_finding(std::string& where, std::string& what) {
    if (findings_.empty()) return false;
    where = findings_[0].first;
    what = findings_[0].second;
    for (std::size_t i = 1; i < std::min<std::size_t>(findings_.size(), 4); ++i)
      what += "; " + findings_[i].first + ": " + findings_[i].second;
    if (findings_.size() > 4) what += message("; and %zu more", findings_.size() - 4).text;
    findings_.clear();
    known_.clear();
    return true;
  }
  // ---- counters
  /// Of the present kernel.
  InstructionCounter& counter() { return *counter_; }
  /// visit(kernel, place, count) for each instruction that was counted.
  template <class Visit>
  void for_each_count(Visit visit) {
    describe_counted();
    for (const auto& [kernel, counter] : counters_)
      counter.for_each([&, kernel = kernel](std::uint32_t origin, const LineCount& count) {
        if (count.instructions) visit(kernel, describe(origin), count);
      });
  }
  void reset_counts() {
    for (auto& [kernel, counter] : counters_) counter.reset();
  }

 private:
  /// Finds the source lines of all counted instructions at once.
  void describe_counted() {
    std::vector<const void*> addresses;
    std::vector<std::uint32_t> origins;
    for (const auto& [kernel, counter] : counters_)
      counter.for_each([&](std::uint32_t origin, const LineCount&) {
        if (!origins_[origin].address || described_.contains(origin)) return;
        addresses.push_back(origins_[origin].address);
        origins.push_back(origin);
      });
    if (addresses.empty()) return;
    const auto lines = source_lines(addresses);
    for (std::size_t i = 0; i < lines.size(); ++i) described_[origins[i]] = lines[i];
  }
  static constexpr std::size_t first_byte = Block::first_zone;  // of the dynamic part
  struct Origin {
    const void* address;
    Place place;
  };
  struct Allocation {
    Allocation(const char* start, std::size_t size)
        : first(start), bytes(size), shadow(std::make_unique<ShadowArray>((size + 1) / 2)) {}
    /// Goes over to one shadow for each byte.
    void refine() {
      auto finer = std::make_unique<ShadowArray>(bytes);
      for (std::size_t i = 0; i < bytes; ++i) (*finer)[i] = (*shadow)[i / 2];
      shadow = std::move(finer);
      grain = 1;
    }
    const char* first;
    std::size_t bytes, grain = 2;
    std::unique_ptr<ShadowArray> shadow;
  };

  static std::uint32_t block_number(const Block& block) {
    return static_cast<std::uint32_t>(block.launch_first + block.number);
  }
  static bool inside_shared(const Block& block, const char* first, std::size_t bytes) {
    if (first + bytes > block.arena + block.arena_used) return false;
    for (const auto& [begin, end] : block.zones)
      if (first < end && first + bytes > begin) return false;
    return true;
  }
  Allocation* find_allocation(const char* pointer) {
    if (last_ && pointer >= last_->first && pointer < last_->first + last_->bytes) return last_;
    const auto found = allocations_.upper_bound(pointer);
    if (found == allocations_.end() || pointer < found->second->first) return nullptr;
    return last_ = found->second.get();
  }

  /// The allocation in whose zone the address lies.
  Allocation* allocation_before(const char* pointer) {
    auto found = allocations_.upper_bound(pointer);
    if (found == allocations_.begin()) return nullptr;
    --found;
    return pointer < found->first + 2 * DeviceMemory::zone ? found->second.get() : nullptr;
  }

  void note(const Accessor& by, const char* kind, const std::string& other, const Message& detail) {
    if (!known_.insert({by.origin, kind, other}).second) return;
    std::string what = kind;
    if (!other.empty()) what += " with " + other;
    what += message(": %s [block %llu thread %u]", detail.text, static_cast<unsigned long long>(by.lane.block->number),
                    by.lane.id)
                .text;
    findings_.emplace_back(describe(by.origin), what);
  }
  void note_bounds(const char* memory, const Accessor& by, std::size_t bytes, std::ptrdiff_t offset) {
    note(by, "out-of-bounds access", "", message("%zu bytes at byte %td of %s memory", bytes, offset, memory));
  }
  void note_race(const Accessor& by, const char* kind, std::uint32_t other, bool shared, std::size_t offset,
                 const Message& whom) {
    if (!known_.insert({by.origin, kind, std::to_string(other)}).second) return;
    note(by, kind, describe(other),
         message("byte %zu of %s memory, against %s", offset, shared ? "shared" : "global", whom.text));
  }

  // ---- accesses of operations on other streams
  static const char* order_kind(bool write, bool other_writes) {
    return write ? other_writes ? "write after write" : "write after read" : "read after write";
  }
  /// Whether a kernel's access and the other operation have not been reported before.
  bool first_time(const Accessor& by, const char* kind, const PastOperation& past, std::uint32_t other) {
    return known_
        .insert({by.origin, kind + std::to_string(past.stamp.sequence) + "." + std::to_string(past.stamp.count),
                 std::to_string(other)})
        .second;
  }
  void note_unordered(const std::string& where, const char* kind, const PastOperation& past, const Message& detail) {
    findings_.emplace_back(
        where, std::string(kind) + " on another stream, not ordered against " + past.what.text() + ": " + detail.text);
  }
  std::string where_of(const Accessor& by) {
    return describe(by.origin) + " in " + kernel_name(runtime().performed.operation->kernel);
  }
  /// A kernel's access against copies, fills and products.
  void check_spans(const Accessor& by, const char* first, std::size_t bytes, std::size_t offset) {
    for (const auto& past : order_.concurrent())
      for (const Span& span : past->spans) {
        const bool other_writes = span.use == Span::Use::write;
        if (!(by.write || other_writes) || !span.touches(first, bytes)) continue;
        const char* kind = order_kind(by.write, other_writes);
        if (first_time(by, kind, *past, 0))
          note_unordered(where_of(by), kind, *past, message("byte %zu of the allocation", offset));
      }
  }
  /// A kernel's access against an earlier kernel's.
  void check_kernel_before(const Accessor& by, std::uint32_t block, std::uint32_t origin, bool other_writes,
                           std::size_t offset) {
    const PastOperation* past = order_.concurrent().empty() ? nullptr : order_.concurrent_kernel(block);
    const char* kind = order_kind(by.write, other_writes);
    if (past && first_time(by, kind, *past, origin))
      note_unordered(where_of(by), kind, *past,
                     message("byte %zu of the allocation, with %s", offset, describe(origin).c_str()));
  }
  /// A copy, fill or product against any operation.
  void check_operation(const Operation& operation, const Span& span, const PastOperation& past) {
    const bool write = span.use == Span::Use::write;
    for (const Span& other : past.spans) {
      const bool other_writes = other.use == Span::Use::write;
      if ((write || other_writes) && other.touches(span))
        return note_unordered(operation.text(), order_kind(write, other_writes), past,
                              message("%zu bytes at %p", span.bytes, static_cast<const void*>(span.first)));
    }
    Allocation* const allocation = past.blocks ? find_allocation(span.first) : nullptr;
    if (!allocation) return;
    for (std::size_t row = 0; row < span.rows; ++row) {
      const auto offset = static_cast<std::size_t>(span.row(row) - allocation->first);
      for (std::size_t cell = offset / allocation->grain; cell * allocation->grain < offset + span.bytes; ++cell) {
        const Shadow& shadow = (*allocation->shadow)[cell];
        const bool written = past.has_block(shadow.writer_block), read = write && past.has_block(shadow.reader_block);
        if (!written && !read) continue;
        const std::string other = describe(written ? shadow.writer_origin : shadow.reader_origin);
        return note_unordered(operation.text(), order_kind(write, written), past,
                              message("byte %zu of the allocation, with %s", cell * allocation->grain, other.c_str()));
      }
    }
  }

  /// Whether everything that `block` did up to (epoch, thread) is ordered before this access.
  bool ordered(std::uint32_t block, std::uint32_t epoch, std::uint32_t thread) const {
    const auto found = acquired_.find(block);
    if (found == acquired_.end()) return false;
    return epoch < found->second.epoch || (epoch == found->second.epoch && thread == found->second.thread);
  }
  void check_write_before(const Shadow& cell, const Accessor& by, bool shared, std::size_t offset) {
    if (cell.atomic && by.atomic) return;
    if (cell.writer_block < by.launch_first)  // an earlier launch
      return shared ? void() : check_kernel_before(by, cell.writer_block, cell.writer_origin, true, offset);
    if (cell.writer_block != by.block) {
      if (!ordered(cell.writer_block, cell.writer_epoch, cell.writer_thread))
        note_race(by, by.write ? "write after write of another block" : "read after write of another block",
                  cell.writer_origin, shared, offset,
                  message("block %llu", static_cast<unsigned long long>(cell.writer_block - by.launch_first)));
      return;
    }
    if (cell.writer_thread == by.lane.id || cell.writer_epoch < by.epoch) return;
    const unsigned warp = cell.writer_thread / 32u, lane = cell.writer_thread % 32u;
    if (warp == by.lane.warp->index && seen_[warp][by.lane.index][lane] > cell.writer_turn) return;
    note_race(by, by.write ? "write after write" : "read after write", cell.writer_origin, shared, offset,
              message("thread %u", cell.writer_thread));
  }
  void check_reads_before(const Shadow& cell, const Accessor& by, bool shared, std::size_t offset) {
    if (cell.reader_block < by.launch_first)
      return shared ? void() : check_kernel_before(by, cell.reader_block, cell.reader_origin, false, offset);
    if (cell.several_blocks || cell.reader_block != by.block) {
      if (cell.several_blocks || !ordered(cell.reader_block, cell.reader_epoch, Block::max_threads))
        note_race(by, "write after read of another block", cell.reader_origin, shared, offset,
                  message("another block"));
      return;
    }
    if (cell.reader_epoch < by.epoch) return;
    const char* kind = "write after read";
    if (cell.reader_warp != by.lane.warp->index)
      return note_race(by, kind, cell.reader_origin, shared, offset, message("other warps"));
    for (unsigned rest = cell.reader_lanes & ~(1u << by.lane.index); rest; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (seen_[by.lane.warp->index][by.lane.index][lane] <= cell.reader_turn)
        return note_race(by, kind, cell.reader_origin, shared, offset, message("lane %u of this warp", lane));
    }
  }
  void remember_read(Shadow& cell, const Accessor& by) {
    const bool same_launch = cell.reader_block >= by.launch_first;
    const unsigned bit = 1u << by.lane.index;
    const bool same_block = cell.reader_block == by.block;
    cell.several_blocks = same_launch && (cell.several_blocks || !same_block);
    if (same_block && cell.reader_epoch == by.epoch) {
      const bool one_warp = cell.reader_warp == by.lane.warp->index;
      bool all_seen = one_warp;  // earlier readers that this lane has met at a __syncwarp need no memory
      for (unsigned rest = cell.reader_lanes; all_seen && rest; rest &= rest - 1)
        all_seen = seen_[by.lane.warp->index][by.lane.index][std::countr_zero(rest)] > cell.reader_turn;
      cell.reader_lanes = all_seen ? bit : cell.reader_lanes | bit;
      if (!one_warp) cell.reader_warp = 0xffff;
    } else {
      cell.reader_block = by.block;
      cell.reader_lanes = bit;
      cell.reader_warp = static_cast<std::uint16_t>(by.lane.warp->index);
    }
    cell.reader_epoch = by.epoch;
    cell.reader_turn = by.turn;
    cell.reader_origin = by.origin;
  }
  void check(Shadow& cell, const Accessor& by, bool shared, std::size_t offset) {
    const bool fresh = shared && cell.writer_block != by.block;  // this block has not written it
    if (cell.in_flight && !fresh)
      note(by, by.write ? "store over a cp.async in flight" : "read of cp.async data in flight",
           describe(cell.writer_origin),
           message("byte %zu of shared memory, copied by thread %u", offset, cell.writer_thread));
    if (!by.write && fresh) note(by, "uninitialized read", "", message("byte %zu of shared memory", offset));
    if (!fresh) check_write_before(cell, by, shared, offset);
    if (!by.write) {
      if (shared && cell.reader_block != by.block) cell.reader_block = 0;
      return remember_read(cell, by);
    }
    if (!shared || cell.reader_block == by.block) check_reads_before(cell, by, shared, offset);
    cell.writer_block = by.block;
    cell.writer_epoch = by.epoch;
    cell.writer_turn = by.turn;
    cell.writer_origin = by.origin;
    cell.writer_thread = static_cast<std::uint16_t>(by.lane.id);
    cell.atomic = by.atomic;
    cell.in_flight = false;
    cell.reader_block = 0;
  }

  std::vector<Origin> origins_;
  std::map<std::uint32_t, std::string> described_;
  std::unordered_map<const void*, std::uint32_t> address_origin_;
  std::map<std::pair<const char*, int>, std::uint32_t> place_origin_;
  std::pair<const void*, std::uint32_t> recent_[1024] = {};
  std::map<const char*, std::unique_ptr<Allocation>> allocations_;  // by end
  Allocation* last_ = nullptr;
  ShadowArray shared_{Block::arena_bytes};
  // seen_[warp][i][k]: what lane k did before this turn of the warp is ordered before lane i
  std::uint32_t turn_[Block::max_threads / 32] = {};
  std::uint32_t seen_[Block::max_threads / 32][32][32] = {};
  bool fenced_ = false;
  std::uint32_t fence_epoch_ = 0;
  std::uint64_t launch_ = 0;
  Publications acquired_;
  std::unordered_map<const void*, Publications> published_;
  std::vector<std::pair<std::string, std::string>> findings_;
  std::set<std::tuple<std::uint32_t, std::string, std::string>> known_;
  std::map<const void*, InstructionCounter> counters_;  // by kernel
  InstructionCounter* counter_ = &counters_[nullptr];
  StreamOrder order_;
};

}  // namespace typeformer
