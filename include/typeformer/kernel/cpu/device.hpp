/// The CPU as a device: memory, and a team of threads that belongs to the object.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// How a CPU device works: on how many threads, and in whose memory.
struct DeviceOptions {
  int threads = 0;  ///< the calling one included; 0: as many as the machine has cores
  /// Memory of the caller instead of the system's, for weights, caches and activations (operations take small
  /// temporaries from the heap): at least `bytes`, aligned to 64, or null when there is none left. Called with `user`,
  /// by every thread that uses the device. Either both functions or none.
  void* (*allocate)(std::size_t bytes, void* user) = nullptr;
  void (*release)(void* memory, void* user) = nullptr;
  void* user = nullptr;
};

/// Runs operations on `threads` threads, the calling one included. Results do not depend on their number.
/// Several threads may use one device at a time: one has the team, the others run alone meanwhile.
class Device {
 public:
  /// With the system's memory. Throws Error when `threads` is negative or more than the system can start.
  explicit Device(int threads = 0) : Device(DeviceOptions{.threads = threads}) {}
  /// Throws Error besides when only one of the two functions is given.
  explicit Device(const DeviceOptions& options) : options_(options) {
    const int threads = options.threads;
    if (threads < 0) throw Error("cpu::Device", "threads", "0 (all cores) or more", std::to_string(threads));
    if (!options.allocate != !options.release)
      throw Error("cpu::Device", options.allocate ? "release" : "allocate", "a function, as the other one is given",
                  "none");
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int team = threads == 0 ? cores : threads;
    try {
      for (int member = 1; member < team; ++member) workers_.emplace_back([this, member] { serve(member); });
    } catch (const std::system_error&) {
      stop();
      throw Error("cpu::Device", "threads", "a number that the system can start", std::to_string(team));
    }
  }
  ~Device() { stop(); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  static constexpr std::string_view name = "cpu";
  /// Activations are float whatever the weights are.
  template <class Weight>
  using Activation = float;
  /// Numbers of the logits that a loss makes at a time: they stay in a cache.
  static constexpr std::int64_t loss_logits = std::int64_t{4} << 20;
  /// How many work, the calling one included.
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Aligned to a cache line. Throws Error when memory is short.
  void* allocate(std::size_t bytes) {
    const std::size_t lines = (bytes + 63) / 64 * 64;
    void* memory = options_.allocate ? options_.allocate(lines, options_.user) : std::aligned_alloc(64, lines);
    if (!memory) throw Error("cpu::Device::allocate", "bytes", "memory to be available", std::to_string(bytes));
    if (reinterpret_cast<std::uintptr_t>(memory) % 64 == 0) return memory;
    release(memory);
    throw Error("cpu::Device::allocate", "memory", "an address that is a multiple of 64", "another one");
  }
  /// Memory of allocate, or null when that is the system's.
  void release(void* memory) noexcept {
    if (options_.release)
      options_.release(memory, options_.user);
    else
      std::free(memory);
  }
  /// Copies and fills happen at the call: host memory and a CPU device's are one.
  void upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void zero(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }
  /// Nothing to wait for.
  void synchronize() {}

  /// Calls work(first, last) for ranges that cover [0, count), in parallel; ranges are multiples of `grain` long. What
  /// a range throws is thrown here once all have ended; running out of memory as Error.
  template <class Work>
  void parallel(std::int64_t count, std::int64_t grain, Work&& work) try {
    const std::int64_t pieces = (count + grain - 1) / grain;
    const Team team(busy_);
    if (pieces <= 1 || workers_.empty() || !team.mine) {
      if (count > 0) work(std::int64_t{0}, count);
      return;
    }
    struct Job {
      Work& work;
      std::int64_t count, grain, pieces;
    } job{work, count, grain, pieces};
    run(
        [](void* data, int member, int members) {
          const Job& j = *static_cast<Job*>(data);
          const std::int64_t first = j.pieces * member / members * j.grain;
          const std::int64_t last = std::min(j.count, j.pieces * (member + 1) / members * j.grain);
          if (first < last) j.work(first, last);
        },
        &job);
  } catch (const std::bad_alloc&) {
    no_room();
  }
  /// `count` zeros for an operation's temporaries. Throws Error when memory is short.
  static std::vector<float> temporaries(std::size_t count) try {
    return std::vector<float>(count);
  } catch (const std::bad_alloc&) {
    no_room();
  } catch (const std::length_error&) {
    no_room();
  }

 private:
  [[noreturn]] static void no_room() {
    throw Error("cpu::Device", "memory", "room for an operation's temporaries", "none");
  }
  using Task = void (*)(void* data, int member, int members);

  /// Holds the team of threads, if nobody else does.
  struct Team {
    explicit Team(std::atomic_flag& flag) : busy(flag), mine(!flag.test_and_set(std::memory_order_acquire)) {}
    ~Team() {
      if (mine) busy.clear(std::memory_order_release);
    }
    Team(const Team&) = delete;
    std::atomic_flag& busy;
    const bool mine;
  };

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }
  /// Runs one member's share; the first failure of all members is kept.
  void attempt(Task task, void* data, int member, int members) noexcept {
    try {
      task(data, member, members);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void run(Task task, void* data) {
    {
      const std::lock_guard lock(mutex_);
      task_ = task;
      data_ = data;
      pending_ = static_cast<int>(workers_.size());
      failure_ = nullptr;
      ++generation_;
    }
    wake_.notify_all();
    attempt(task, data, 0, threads());
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    lock.unlock();
    if (failure) std::rethrow_exception(failure);
  }
  void serve(int member) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      const Task task = task_;
      void* data = data_;
      const int members = static_cast<int>(workers_.size()) + 1;
      lock.unlock();
      attempt(task, data, member, members);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  DeviceOptions options_;
  std::vector<std::thread> workers_;
  std::atomic_flag busy_;  // set by the caller whose work the team does
  std::mutex mutex_;       // guards the fields below
  std::condition_variable wake_, done_;
  Task task_ = nullptr;
  void* data_ = nullptr;
  std::exception_ptr failure_;
  std::uint64_t generation_ = 0;
  int pending_ = 0;
  bool stopping_ = false;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
