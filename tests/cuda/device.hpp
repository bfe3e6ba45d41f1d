/// The CUDA device itself, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace device {

/// Numbers that went to the device and back through a buffer, on a stream of the caller's or the device's own.
std::vector<double> round_trip(const std::vector<double>& numbers, bool own_stream);

/// The number that arrives when host memory is overwritten right after its upload.
double reused_after_upload(bool pinned);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);

/// Two lists of a slot, uploaded as often as asked; returns what the GPU's copy holds in the end, and whether an equal
/// list kept its place.
struct Lists {
  std::string contents;
  bool kept = false;
};
Lists upload_lists();

/// What the GPU's copy of a list holds when, between two equal uploads of it, one failed for want of memory.
std::string list_after_failure();

/// What goes wrong when the memory is the caller's, and when released memory is asked for again.
std::string callers_memory();
std::string kept_memory();

/// What goes wrong when operations are recorded and replayed: with other numbers in the same memory, another key, more
/// scratch memory in between, lists that were forgotten before and after, and work that fails while it is recorded.
std::string replayed();
/// What goes wrong on the streams that CUDA cannot capture: the null stream, by both of its names.
std::string not_recorded();
/// What goes wrong when the caller captures the stream: what can't be captured is refused, all else is in the graph.
std::string captured_by_the_caller();

/// What goes wrong when a device of the second GPU works while the first one is current, and is destroyed then; "one
/// GPU" on a machine with one.
std::string with_another_gpu_current();

/// Bytes of a block's shared memory by kernel and padded head_dim, against what every GPU grants.
struct SharedMemory {
  std::string kernel;
  std::size_t bytes = 0;
};
std::vector<SharedMemory> shared_memory();

}  // namespace device
