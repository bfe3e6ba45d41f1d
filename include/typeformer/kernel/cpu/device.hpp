/// The CPU as a device: memory, and a team of threads that belongs to the object.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cpu {

/// Runs operations on `threads` threads, the calling one included. Results do not depend on their number.
/// Several threads may use one device at a time: one has the team, the others run alone meanwhile.
class Device {
 public:
  /// 0: as many threads as the machine has cores.
  explicit Device(int threads = 0) {
    if (threads < 0) throw Error("cpu::Device", "threads", "0 (all cores) or more", std::to_string(threads));
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int team = threads == 0 ? cores : threads;
    for (int member = 1; member < team; ++member) workers_.emplace_back([this, member] { serve(member); });
  }
  ~Device() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  static constexpr std::string_view name = "cpu";
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Aligned to a cache line. Throws Error when memory is short.
  void* allocate(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) throw Error("cpu::Device::allocate", "bytes", "memory to be available", std::to_string(bytes));
    return memory;
  }
  void release(void* memory) noexcept { std::free(memory); }
  void upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void zero(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }
  void synchronize() {}

  /// Calls work(first, last) for ranges that cover [0, count), in parallel; ranges are multiples of `grain` long.
  template <class Work>
  void parallel(std::int64_t count, std::int64_t grain, Work&& work) {
    const std::int64_t pieces = (count + grain - 1) / grain;
    const std::unique_lock team(team_, std::try_to_lock);
    if (pieces <= 1 || workers_.empty() || !team.owns_lock()) {
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
  }

 private:
  using Task = void (*)(void* data, int member, int members);

  void run(Task task, void* data) {
    {
      const std::lock_guard lock(mutex_);
      task_ = task;
      data_ = data;
      pending_ = static_cast<int>(workers_.size());
      ++generation_;
    }
    wake_.notify_all();
    task(data, 0, threads());
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
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
      task(data, member, members);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex team_;   // held by the caller whose work the team does
  std::mutex mutex_;  // guards the fields below
  std::condition_variable wake_, done_;
  Task task_ = nullptr;
  void* data_ = nullptr;
  std::uint64_t generation_ = 0;
  int pending_ = 0;
  bool stopping_ = false;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cpu
