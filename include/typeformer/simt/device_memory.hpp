/// Device memory on the host: one arena that host code may not touch, filled with NaN, a guarded zone behind each
/// piece.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <csetjmp>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "typeformer/simt/shared_memory.hpp"
#include "typeformer/simt/source_line.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// All device allocations. Readable and writable only while device work runs (between open and close).
class DeviceMemory {
 public:
  static constexpr std::size_t capacity = std::size_t{4} << 30, zone = 256, huge_page = std::size_t{2} << 20;

  DeviceMemory() {
    void* memory = mmap(nullptr, capacity + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error("simt", "device memory", "4 GiB of address space", "none left");
    base_ = static_cast<char*>(memory) + (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
    madvise(base_, capacity, MADV_HUGEPAGE);  // protection changes at every wait: its cost is by pages, not by bytes
    watched_ = this;
    install(previous_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void open() {
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    if (--open_ == 0) protect(PROT_NONE);
  }

  /// Memory of a GPU. Null when nothing is left.
  char* allocate(std::size_t bytes, int gpu = 0) {
    const std::size_t needed = (bytes + 255) / 256 * 256 + zone;
    char* result = reuse(needed);
    if (!result) {
      if (needed > capacity - top_) return nullptr;
      result = base_ + top_;
      top_ += needed;
      if (open_) protect(PROT_READ | PROT_WRITE);
    }
    open();
    unpoison(result, needed);
    std::memset(result, poison_byte, bytes);
    std::memset(result + bytes, zone_byte, needed - bytes);
    poison(result + bytes, needed - bytes);
    close();
    live_[result] = {bytes, gpu, ++allocations_};
    used_[gpu] += bytes;
    checker_allocate(result, bytes);
    return result;
  }

  /// False when the pointer is not the start of an allocation.
  bool release(void* pointer) {
    const auto found = live_.find(static_cast<char*>(pointer));
    if (found == live_.end()) return false;
    const std::size_t bytes = found->second.bytes, whole = (bytes + 255) / 256 * 256 + zone;
    checker_release(pointer);
    used_[found->second.gpu] -= bytes;
    live_.erase(found);
    open();
    unpoison(static_cast<char*>(pointer), whole);
    std::memset(pointer, poison_byte, bytes);
    poison(static_cast<char*>(pointer), whole);
    close();
    free_.emplace(whole, static_cast<char*>(pointer));
    return true;
  }

  /// Notes that the allocation will be released. False when the pointer starts none, or has been noted before.
  bool begin_release(void* pointer) {
    const auto found = live_.find(static_cast<char*>(pointer));
    return found != live_.end() && !std::exchange(found->second.releasing, true);
  }
  /// Releases all that a GPU has.
  void release_all(int gpu) {
    std::vector<char*> pieces;
    for (const auto& [start, piece] : live_)
      if (piece.gpu == gpu) pieces.push_back(start);
    for (char* start : pieces) release(start);
  }

  bool contains(const void* pointer) const {
    return static_cast<const char*>(pointer) >= base_ && static_cast<const char*>(pointer) < base_ + capacity;
  }
  /// Whether [pointer, pointer + bytes) lies in one allocation; its end counts when bytes is 0.
  bool valid(const void* pointer, std::size_t bytes) const {
    const auto found = find(pointer);
    return found != live_.end() && static_cast<const char*>(pointer) + bytes <= found->first + found->second.bytes;
  }
  /// The GPU whose memory a valid pointer points to.
  int gpu_of(const void* pointer) const { return find(pointer)->second.gpu; }
  /// A number of its own for each allocation ever made; 0 for what is no address of any, or its end.
  std::uint64_t serial_of(const void* pointer) const { return valid(pointer, 0) ? find(pointer)->second.serial : 0; }
  /// Bytes of the allocation that a valid pointer points to.
  std::size_t size_of(const void* pointer) const { return find(pointer)->second.bytes; }
  /// Bytes that are allocated on a GPU, and allocations on all.
  std::size_t used(int gpu) const {
    const auto found = used_.find(gpu);
    return found == used_.end() ? 0 : found->second;
  }
  std::size_t pieces() const { return live_.size(); }

  /// Tells the first allocation that was written past its end, and repairs its zone. Needs open memory.
  bool find_overrun(std::size_t& bytes, std::size_t& offset) {
#if !defined(TYPEFORMER_SIMT_ASAN)  // AddressSanitizer reports the store itself
    for (const auto& [start, piece] : live_) {
      const std::size_t size = piece.bytes;
      for (std::size_t i = 0; i < (size + 255) / 256 * 256 + zone - size; ++i)
        if (static_cast<unsigned char>(start[size + i]) != zone_byte) {
          bytes = size;
          offset = size + i;
          std::memset(start + size, zone_byte, (size + 255) / 256 * 256 + zone - size);
          return true;
        }
    }
#endif
    (void)bytes;
    (void)offset;
    return false;
  }

  /// Runs host code; returns the source line where it touched device memory, or an empty text. The touching code is
  /// left by a long jump: it must not own anything at that point.
  template <class Code>
  static std::string host_access(Code code) {
    const Watch watch;  // a test framework may have put its own handler in place since
    sigjmp_buf place;
    probe_ = &place;
    touched_[0] = 0;
    if (sigsetjmp(place, 1) == 0) code();
    probe_ = nullptr;
    return touched_;
  }

 private:
  void protect(int mode) {
    if (top_) mprotect(base_, (top_ + huge_page - 1) / huge_page * huge_page, mode);
  }
  char* reuse(std::size_t needed) {
    const auto found = free_.find(needed);
    // late reuse: stale pointers keep reading NaN; no later, as protecting a large arena takes time
    if (found == free_.end() || top_ < capacity / 64) return nullptr;
    char* result = found->second;
    free_.erase(found);
    return result;
  }
  static void poison([[maybe_unused]] char* first, [[maybe_unused]] std::size_t bytes) {
#if defined(TYPEFORMER_SIMT_ASAN)
    __asan_poison_memory_region(first, bytes);
#endif
  }
  static void unpoison([[maybe_unused]] char* first, [[maybe_unused]] std::size_t bytes) {
#if defined(TYPEFORMER_SIMT_ASAN)
    __asan_unpoison_memory_region(first, bytes);
#endif
  }
  // A segmentation fault inside the arena is host code that used a device pointer: names the line, then goes on to
  // crash.
  static void handle(int number, siginfo_t* info, void* context) {
    if (watched_->contains(info->si_addr)) report_touch(info->si_addr, context);
    if (previous_.sa_flags & SA_SIGINFO) return previous_.sa_sigaction(number, info, context);
    sigaction(number, &previous_, nullptr);
  }
  static void install(struct sigaction& previous) {
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &previous);
  }
  struct Watch {
    struct sigaction before {};
    Watch() { install(before); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { sigaction(SIGSEGV, &before, nullptr); }
  };
  static void report_touch(const void* address, void* context) {
    const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    const auto counter = reinterpret_cast<const char*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    const auto counter = reinterpret_cast<const char*>(machine.pc);
#else
    const char* counter = nullptr;
    (void)machine;
#endif
    {
      const std::string line = source_line(counter + 1);
      std::snprintf(touched_, sizeof touched_, "%s: host code touches device memory at %p", line.c_str(), address);
    }  // the jump destroys nothing
    if (probe_) siglongjmp(*probe_, 1);
    std::fprintf(stderr, "simt: %s\n", touched_);
  }

  char* base_ = nullptr;
  std::size_t top_ = 0;
  int open_ = 0;
  struct Piece {
    std::size_t bytes = 0;
    int gpu = 0;
    std::uint64_t serial = 0;
    bool releasing = false;
  };
  /// The last allocation that starts at the pointer or before.
  std::map<char*, Piece>::const_iterator find(const void* pointer) const {
    const auto after = live_.upper_bound(static_cast<char*>(const_cast<void*>(pointer)));
    return after == live_.begin() ? live_.end() : std::prev(after);
  }
  std::map<char*, Piece> live_;
  std::map<int, std::size_t> used_;
  std::uint64_t allocations_ = 0;
  std::multimap<std::size_t, char*> free_;
  inline static DeviceMemory* watched_ = nullptr;
  inline static struct sigaction previous_ {};
  inline static thread_local sigjmp_buf* probe_ = nullptr;
  inline static char touched_[600] = {};
};

}  // namespace typeformer
