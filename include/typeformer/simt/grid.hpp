/// Running a grid: blocks one after the other on a pool of operating-system threads.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "typeformer/simt/shared_memory.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A CUDA thread from its first to its last instruction.
inline void run_lane(void* argument) {
  fiber_started();
  Lane& lane = *static_cast<Lane*>(argument);
  Block& block = *lane.block;
  device::threadIdx = lane.thread;
  lane.place = block.launch_place;
  lane.operation = "kernel";
  bool threw = false;
  try {
    block.body(block.body_context);
  } catch (...) {
    threw = true;
  }
  if (threw) fail(lane, "kernel", block.launch_place, "no exception in device code", message("one"));
  if (lane.first_copy < lane.copies.size())
    fail(lane, "cp_async", lane.place, "every copy waited for before the thread returns",
         message("%zu copies without a wait", lane.copies.size() - lane.first_copy));
  lane.state = LaneState::done;
  lane.warp->ready &= ~(1u << lane.index);
  ++block.done;
  if (block.at_barrier && block.at_barrier + block.done == block.threads)
    fail(lane, block.barrier_operation, block.barrier_place, "all threads of the block at one barrier",
         message("divergent barriers: %u thread(s) returned while %u wait", block.done, block.at_barrier));
  if (block.done == block.threads) {
    switch_fiber(lane.fiber, block.scheduler, true);
    __builtin_unreachable();
  }
  Lane* next = pick(block, *lane.warp, lane.index);
  if (!next) fail(lane, "kernel", lane.place, "every thread that others wait for to arrive", describe_deadlock(block));
  current_lane = next;
  switch_fiber(lane.fiber, next->fiber, true);
  __builtin_unreachable();
}

/// Makes the block's fibers, as many as it has threads.
inline void prepare_lanes(Block& block, dim3 shape) {
  const unsigned count = shape.x * shape.y * shape.z;
  if (count > block.capacity) {
    for (unsigned i = 0; i < block.capacity; ++i) free_stack(block.lanes[i].fiber);
    block.capacity = 0;
    block.lanes = std::make_unique<Lane[]>((count + 31) / 32 * 32);
    for (; block.capacity < count; ++block.capacity) {
      block.lanes[block.capacity].fiber.color = block.capacity;
      allocate_stack(block.lanes[block.capacity].fiber, options().stack);
    }
  }
  block.threads = count;
  block.warp_count = (count + 31) / 32;
  for (unsigned i = 0; i < block.warp_count; ++i) {
    Warp& warp = block.warps[i];
    warp.lanes = &block.lanes[32 * i];
    warp.index = i;
    warp.size = std::min(32u, count - 32 * i);
    warp.existing = warp.ready = warp.size == 32 ? ~0u : (1u << warp.size) - 1;
    warp.arrived = 0;
  }
  for (unsigned i = 0; i < count; ++i) {
    Lane& lane = block.lanes[i];
    lane.block = &block;
    lane.warp = &block.warps[i / 32];
    lane.id = i;
    lane.index = i & 31;
    lane.thread = {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)};
    lane.state = LaneState::ready;
    lane.copies.clear();
    lane.groups.clear();
    lane.first_copy = lane.first_group = 0;
    prepare(lane.fiber, run_lane, &lane);
  }
}

inline void run_block(Block& block, dim3 shape) {
  block.at_barrier = block.done = block.barrier_epoch = 0;
  block.votes_or = block.votes_count = 0;
  block.votes_and = 1;
  begin_shared(block);
  prepare_lanes(block, shape);
  checker_block_begin(block);
  Lane* first = options().random() ? pick(block, block.warps[0], 31) : &block.lanes[0];
  current_lane = first;
  switch_fiber(block.scheduler, first->fiber);
  current_lane = nullptr;
  checker_block_end(block);
  end_shared(block);
}

/// A grid while operating-system threads take its blocks.
struct GridJob {
  dim3 grid, block;
  std::size_t dynamic_bytes = 0;
  void (*body)(void*) = nullptr;
  void* context = nullptr;
  Place place{};
  std::uint64_t total = 0, launch_first = 0;
  std::vector<std::uint64_t> order;  // empty: in order
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  FaultRecord fault;
};

/// Takes blocks until none is left or one failed.
inline void work_on(GridJob& job) {
  Block& block = this_block();
  block.body = job.body;
  block.body_context = job.context;
  block.dynamic_bytes = job.dynamic_bytes;
  block.launch_first = job.launch_first;
  block.launch_place = job.place;
  device::blockDim = job.block;
  device::gridDim = job.grid;
  const std::uint64_t row = job.grid.x, layer = row * job.grid.y;
  while (!job.stop.load(std::memory_order_relaxed)) {
    const std::uint64_t turn = job.next.fetch_add(1, std::memory_order_relaxed);
    if (turn >= job.total) break;
    const std::uint64_t number = job.order.empty() ? turn : job.order[turn];
    block.number = number;
    block.random_state = (options().seed * 0x9E3779B97F4A7C15ull) ^ ((number + 1) * 0xD1B54A32D192ED03ull) ^ 1u;
    device::blockIdx = {static_cast<unsigned>(number % row), static_cast<unsigned>(number % layer / row),
                        static_cast<unsigned>(number / layer)};
    run_block(block, job.block);
    if (!block.fault.set) continue;
    const std::lock_guard<std::mutex> lock(job.mutex);
    if (!job.fault.set) job.fault = block.fault;
    block.fault = FaultRecord{};
    job.stop = true;
  }
}

/// Helper threads that wait for grids.
class Pool {
 public:
  explicit Pool(unsigned helpers) {
    for (unsigned i = 0; i < helpers; ++i) threads_.emplace_back([this] { serve(); });
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  /// Runs the job on the helpers and the calling thread.
  void run(GridJob& job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      ++generation_;
      busy_ = threads_.size();
    }
    wake_.notify_all();
    work_on(job);
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return quit_ || generation_ != seen; });
      if (quit_) return;
      seen = generation_;
      GridJob& job = *job_;
      lock.unlock();
      work_on(job);
      lock.lock();
      if (--busy_ == 0) finished_.notify_all();
    }
  }
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  GridJob* job_ = nullptr;
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool quit_ = false;
};

inline void shuffle_order(GridJob& job) {
  job.order.resize(job.total);
  for (std::uint64_t i = 0; i < job.total; ++i) job.order[i] = i;
  std::uint64_t state = options().seed * 0x9E3779B97F4A7C15ull | 1u;
  for (std::uint64_t i = job.total; i > 1; --i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::swap(job.order[i - 1], job.order[state % i]);
  }
}

/// Runs body(context) as every thread of every block. Throws Fault with what the first failing thread did, or with what
/// the race checker found. The configuration is the caller's to check.
inline void run_grid(dim3 grid, dim3 block, std::size_t dynamic_bytes, void (*body)(void*), void* context,
                     Place place) {
  static std::mutex one_at_a_time;
  static std::uint64_t blocks_before = 1;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  GridJob job;
  job.grid = grid;
  job.block = block;
  job.dynamic_bytes = dynamic_bytes;
  job.body = body;
  job.context = context;
  job.place = place;
  job.total = std::uint64_t{grid.x} * grid.y * grid.z;
  job.launch_first = blocks_before;
  blocks_before += job.total;
  checker_launch(job.launch_first, job.total);
  if (options().random()) shuffle_order(job);
  if (options().threads <= 1 || job.total == 1) {
    work_on(job);
  } else {
    static Pool pool(options().threads - 1);
    pool.run(job);
  }
  FaultRecord& fault = job.fault;
  std::string where, what;
  const bool found = checker_new_finding(where, what);
  if (fault.set && found) fault.got += "; race checker: " + where + ": " + what;
  if (fault.set) throw Fault(fault.operation, fault.argument, fault.expected, fault.got);
  if (found) throw Fault("race checker", where, "ordered, initialized, in-bounds access", what);
}

}  // namespace typeformer
