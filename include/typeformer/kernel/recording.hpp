/// Operations that are run again and again on the same memory: a device may record them once and replay them.
#pragma once
#include <cstdint>
#include <span>
#include <utility>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {
namespace detail {

struct NothingRecorded {};
template <class Device>
struct RecordingOf {
  using Type = NothingRecorded;
};
template <class Device>
requires requires { typename Device::Recording; }
struct RecordingOf<Device> {
  using Type = typename Device::Recording;
};

}  // namespace detail

/// What a Device keeps of operations that it recorded; empty when it records nothing.
template <class Device>
using recording_t = typename detail::RecordingOf<Device>::Type;

/// Runs the operations that work() calls. A device that records replays them instead when the key, equal to that of
/// an earlier call, says that they are the same again: the same operations with the same sizes and pointers. What lies
/// in the memory may differ. cuda::Device::run tells how.
template <class Device, class Work>
void run_recorded(Device& on, recording_t<Device>& recording, std::span<const std::int64_t> key, Work&& work) {
  if constexpr (requires { on.run(recording, key, work); })
    on.run(recording, key, work);
  else
    std::forward<Work>(work)();
}

}  // namespace typeformer::inline TYPEFORMER_ABI
