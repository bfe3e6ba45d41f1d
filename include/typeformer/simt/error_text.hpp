/// Names and texts of the CUDA runtime's statuses.
#pragma once
#include "typeformer/simt/runtime_types.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

struct ErrorText {
  const char *name, *text;
};

inline ErrorText error_text(cudaError_t error) {
#define TYPEFORMER_SIMT_ERROR(name, text) \
  case name:                              \
    return {#name, text};
  switch (error) {
    TYPEFORMER_SIMT_ERROR(cudaSuccess, "no error")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidValue, "invalid argument")
    TYPEFORMER_SIMT_ERROR(cudaErrorMemoryAllocation, "out of memory")
    TYPEFORMER_SIMT_ERROR(cudaErrorInitializationError, "initialization error")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidDevice, "invalid device ordinal")
    TYPEFORMER_SIMT_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle")
    TYPEFORMER_SIMT_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state")
    TYPEFORMER_SIMT_ERROR(cudaErrorNotReady, "device not ready")
    TYPEFORMER_SIMT_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered")
    TYPEFORMER_SIMT_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch")
    TYPEFORMER_SIMT_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated")
    TYPEFORMER_SIMT_ERROR(cudaErrorAssert, "device-side assert triggered")
    TYPEFORMER_SIMT_ERROR(cudaErrorHardwareStackError, "hardware stack error")
    TYPEFORMER_SIMT_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered")
    TYPEFORMER_SIMT_ERROR(cudaErrorMisalignedAddress, "misaligned address")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")
    TYPEFORMER_SIMT_ERROR(cudaErrorInvalidPc, "invalid program counter")
    TYPEFORMER_SIMT_ERROR(cudaErrorLaunchFailure, "unspecified launch failure")
    TYPEFORMER_SIMT_ERROR(cudaErrorNotPermitted, "operation not permitted")
    TYPEFORMER_SIMT_ERROR(cudaErrorNotSupported, "operation not supported")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureMerge,
                          "operation would result in a merge of separate capture sequences")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureImplicit,
                          "operation would make the legacy stream depend on a capturing blocking stream")
    TYPEFORMER_SIMT_ERROR(cudaErrorCapturedEvent,
                          "operation not permitted on an event last recorded in a capturing stream")
    TYPEFORMER_SIMT_ERROR(cudaErrorStreamCaptureWrongThread,
                          "attempt to terminate a thread-local capture sequence from another thread")
    TYPEFORMER_SIMT_ERROR(cudaErrorGraphExecUpdateFailure, "the graph update violates the constraints on updates")
    TYPEFORMER_SIMT_ERROR(cudaErrorUnknown, "unknown error")
    default:
      return {"unrecognized error code", "unrecognized error code"};
  }
#undef TYPEFORMER_SIMT_ERROR
}

}  // namespace typeformer
