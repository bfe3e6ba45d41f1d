// Memory: bounds, alignment, what was written, asynchronous copies.
#include "machine.hpp"

namespace ptx {

void Buffers::add(const void* first, u64 size, std::string name) {
  ranges_.push_back({static_cast<const u8*>(first), size, std::move(name)});
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
}
void Buffers::remove(const void* first) {
  std::erase_if(ranges_, [&](const Range& range) { return range.first == first; });
}
bool Buffers::contains(std::size_t range, const u8* address, u64 size) const {
  if (range >= ranges_.size()) return false;
  const Range& candidate = ranges_[range];
  return address >= candidate.first && address + size <= candidate.first + candidate.size;
}
int Buffers::find(const u8* address, u64 size) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](const u8* value, const Range& range) { return value < range.first; });
  if (after == ranges_.begin()) return -1;
  const auto index = static_cast<std::size_t>(after - ranges_.begin()) - 1;
  return contains(index, address, size) ? static_cast<int>(index) : -1;
}
std::string Buffers::describe(const u8* address) const {
  const Range* nearest = nullptr;
  u64 least = ~u64{0};
  for (const Range& range : ranges_) {
    const u8* end = range.first + range.size;
    const u64 distance = address < range.first ? static_cast<u64>(range.first - address)
                         : address >= end      ? static_cast<u64>(address - end)
                                               : 0;
    if (distance < least) {
      least = distance;
      nearest = &range;
    }
  }
  if (!nearest) return "there are no buffers";
  const std::string name = "'" + nearest->name + "' (" + std::to_string(nearest->size) + " bytes)";
  if (address < nearest->first) return std::to_string(least) + " bytes before " + name;
  if (address >= nearest->first + nearest->size) return std::to_string(least) + " bytes past the end of " + name;
  return "offset " + std::to_string(address - nearest->first) + " in " + name;
}

void Memory::reset(u64 size) {
  data.assign(size, 0xff);
  shadow.assign(size, Shadow::gap);
}
void Memory::allow(u64 offset, u64 size) {
  std::fill_n(shadow.begin() + static_cast<std::ptrdiff_t>(offset), size, Shadow::unwritten);
}

namespace {

std::string access_text(bool write, const char* space, u64 address) {
  return std::string(write ? "store to " : "load from ") + space + " address " + hex(address);
}
const char* complaint(Shadow shadow) {
  if (shadow == Shadow::gap) return "between variables (out of bounds)";
  return shadow == Shadow::unwritten ? "never written" : "an asynchronous copy is still in flight there";
}

}  // namespace

u8* Block::guarded(Warp& warp, const Instruction& instruction, int lane, Space space, u64 address, u32 bytes,
                   bool write) {
  const bool is_shared = space == Space::shared;
  Memory& memory = is_shared ? shared_ : local_[static_cast<std::size_t>(warp.id * static_cast<int>(warp_size) + lane)];
  const char* name = is_shared ? "shared" : "local";
  const u64 offset = is_shared ? address - shared_base : address;
  if (offset > memory.data.size() || offset + bytes > memory.data.size())
    warp.fail(instruction, lane,
              access_text(write, name, address) + ", " + std::to_string(bytes) + " bytes: outside the " +
                  std::to_string(memory.data.size()) + " bytes that exist");
  Shadow* shadow = memory.shadow.data() + offset;
  for (u32 i = 0; i < bytes; ++i) {
    if (shadow[i] == Shadow::written) continue;
    if (shadow[i] == Shadow::unwritten && (write || !options->check_undefined)) continue;
    warp.fail(instruction, lane, access_text(write, name, address + i) + ": " + complaint(shadow[i]));
  }
  if (is_shared) {
    const std::string race = races.touch(static_cast<u32>(warp.id), static_cast<u32>(lane), offset, bytes, write);
    if (!race.empty())
      warp.fail(instruction, lane,
                "race on shared address " + hex(address) + ": " + race + " with no barrier in between");
  }
  if (write) std::fill_n(shadow, bytes, Shadow::written);
  return memory.data.data() + offset;
}

u8* Block::global(Warp& warp, const Instruction& instruction, int lane, u64 address, u32 bytes, bool write) {
  u8* pointer = reinterpret_cast<u8*>(address);
  if (buffers->contains(instruction.recent_buffer, pointer, bytes)) return pointer;
  const int found = buffers->find(pointer, bytes);
  if (found < 0)
    warp.fail(instruction, lane,
              access_text(write, "global", address) + ", " + std::to_string(bytes) + " bytes: out of bounds, " +
                  buffers->describe(pointer));
  instruction.recent_buffer = static_cast<std::size_t>(found);
  return pointer;
}

u8* Block::access(Warp& warp, const Instruction& instruction, int lane, Space space, u64 address, u32 bytes,
                  bool write) {
  if (address % bytes)
    warp.fail(instruction, lane,
              "misaligned " + std::to_string(bytes) + "-byte " + (write ? "store to " : "load from ") + hex(address));
  if (space == Space::generic) {
    space = Space::global;
    const std::pair<u64, Space> windows[] = {
        {shared_window, Space::shared}, {local_window, Space::local}, {parameter_window, Space::parameter}};
    for (const auto& [first, inside] : windows)
      if (address - first < window_size) {
        space = inside;
        address -= first;
        break;
      }
  }
  if (space == Space::shared || space == Space::local)
    return guarded(warp, instruction, lane, space, address, bytes, write);
  if (space != Space::parameter) return global(warp, instruction, lane, address, bytes, write);
  if (address + bytes > parameters_.size())
    warp.fail(instruction, lane, "parameter address " + hex(address) + ": out of bounds");
  if (write) warp.fail(instruction, lane, "store to the kernel's parameters");
  return parameters_.data() + address;
}

// --- asynchronous copies --------------------------------------------------------------------------------------------

void Block::land(const Copy& copy) {
  const u32 offset = copy.to - shared_base;
  std::memcpy(shared_.data.data() + offset, copy.from, copy.source_bytes);
  std::memset(shared_.data.data() + offset + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  std::fill_n(shared_.shadow.begin() + offset, copy.bytes, Shadow::written);
}

/// Lands a copy that the thread waited for: from now on its bytes are as if the thread had stored them.
void Block::land_by(const Copy& copy, const Warp& warp, int lane) {
  land(copy);
  const u32 offset = copy.to - shared_base;
  races.forget(offset, copy.bytes);
  races.touch(static_cast<u32>(warp.id), static_cast<u32>(lane), offset, copy.bytes, true);
}

void Block::issue(Warp& warp, const Instruction& instruction, int lane, Copy copy) {
  u8* to = access(warp, instruction, lane, Space::shared, copy.to, copy.bytes, true);
  if (draw_early()) return land(copy);  // its bytes could be there already
  std::memset(to, 0xff, copy.bytes);
  std::fill_n(shared_.shadow.begin() + (copy.to - shared_base), copy.bytes, Shadow::in_flight);
  thread(warp, lane).open.push_back(copy);
}
void Block::commit(const Warp& warp, int lane) {
  Thread& own = thread(warp, lane);
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}
void Block::wait_for_copies(const Warp& warp, int lane, std::size_t pending) {
  Thread& own = thread(warp, lane);
  for (; own.groups.size() > pending; own.groups.pop_front())
    for (const Copy& copy : own.groups.front()) land_by(copy, warp, lane);
}
bool Block::has_copies(const Warp& warp, int lane) {
  const Thread& own = thread(warp, lane);
  return !own.open.empty() || !own.groups.empty();
}

void Block::deliver(Delivery delivery) {
  deliveries_.push_back(std::move(delivery));
  ++progress;
  if (draw_early())
    while (land_delivery()) continue;
}
void Block::start_bulk_copy(Warp& warp, const Instruction& instruction, int lane, const Copy& copy, u32 barrier) {
  const u64 from = reinterpret_cast<u64>(copy.from);
  for (u32 i = 0; i < copy.bytes; i += 16) {
    access(warp, instruction, lane, Space::global, from + i, 16, false);
    std::memset(access(warp, instruction, lane, Space::shared, copy.to + i, 16, true), 0xff, 16);
  }
  std::fill_n(shared_.shadow.begin() + (copy.to - shared_base), copy.bytes, Shadow::in_flight);
  deliver({{copy}, barrier, copy.bytes, 0});
}
void Block::deliver_copies_of(const Warp& warp, int lane, u32 barrier) {
  Thread& own = thread(warp, lane);
  Delivery delivery{std::move(own.open), barrier, 0, 1};
  own.open.clear();
  for (const auto& group : own.groups) delivery.copies.insert(delivery.copies.end(), group.begin(), group.end());
  deliver(std::move(delivery));
}
bool Block::land_delivery() {
  if (deliveries_.empty()) return false;
  const std::size_t chosen = options->seed ? random() % deliveries_.size() : 0;
  const Delivery delivery = std::move(deliveries_[chosen]);
  deliveries_.erase(deliveries_.begin() + static_cast<std::ptrdiff_t>(chosen));
  for (const Copy& copy : delivery.copies) {
    land(copy);
    races.forget(copy.to - shared_base, copy.bytes);
  }
  PhaseBarrier& barrier = phase_barriers[delivery.barrier];
  barrier.bytes -= delivery.bytes;
  barrier.pending -= delivery.arrivals;
  check_phase(barrier);
  ++progress;
  return true;
}
void Block::check_phase(PhaseBarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = barrier.count;
  ++progress;
}

}  // namespace ptx
