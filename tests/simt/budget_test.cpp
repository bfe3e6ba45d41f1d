// Counts that tests hold as budgets, and what a fault's report says of the kernel.
#include "streams.hpp"
#include "support.hpp"
#include "typeformer/simt/counters.hpp"
#include "typeformer/simt/cublaslt.hpp"
#include "typeformer/simt/tally.hpp"

namespace {

template <int stride>
__global__ void strided(const float* in, float* out) {
  out[threadIdx.x] = in[stride * threadIdx.x];
}
__global__ void transposed(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, tile, 1024);
  for (unsigned k = 0; k < 32; ++k) tile[32 * k + threadIdx.x] = 1;
  __syncthreads();
  out[32 * blockIdx.x + threadIdx.x] = tile[32 * threadIdx.x];
}
/// A copy to every second word of shared memory.
__global__ void spread(const float* in, float* out) {
  TYPEFORMER_SHARED_ARRAY(float, words, 64);
  simt::cp_async<4>(words + 2 * threadIdx.x, in + threadIdx.x, threadIdx.x < 16);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  out[threadIdx.x] = words[2 * threadIdx.x];
}
template <class T>
__global__ void two_barriers(T* out) {
  if (threadIdx.x < 32)
    __syncthreads();  // @first half
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}
#if !defined(TYPEFORMER_SIMT_ASAN)  // UndefinedBehaviorSanitizer ends the program at the first
__global__ void read_float(const char* bytes, float* out) {
  out[threadIdx.x] = *reinterpret_cast<const float*>(bytes + 2);  // @misaligned float
}
__global__ void read_copied(const char* bytes, float* out) {
  std::memcpy(out + threadIdx.x, bytes + 2, 4);  // no single access
}
#endif

}  // namespace

TEST_CASE("transactions of each kernel, over all its launches") {
  const DeviceArray<float> in(std::vector<float>(256, 1.0f)), out(64);
  const simt::CountMemory counting;
  run(strided<1>, {1, 32}, static_cast<const float*>(in.get()), out.get());
  run(transposed, {2, 32}, out.get());
  const auto dense = counting.kernel("strided");
  run(strided<8>, {1, 32}, static_cast<const float*>(in.get()), out.get());
  const auto both = counting.kernel("strided"), shared = counting.kernel("transposed");
  CHECK(counting.kernel("absent").requests == 0);
  if (!simt::CountMemory::available) {
    CHECK(both.requests == 0);
    CHECK(counting.lines().empty());
    return;
  }
  CHECK(dense.requests == 2);
  CHECK(dense.sectors == 8);
  CHECK(dense.ideal_sectors == 8);
  CHECK(dense.sector_ratio() == 1.0);
  CHECK(both.requests == 4);
  CHECK(both.sectors == 8 + 32 + 4);
  CHECK(both.ideal_sectors == 16);
  CHECK(shared.shared_requests == 2 * 33);
  CHECK(shared.wavefronts == 2 * (32 + 32));
  CHECK(shared.ideal_wavefronts == 2 * 33);
  CHECK(shared.wavefront_ratio() > 1.9);
  CHECK(counting.kernels().size() == 2);
  CHECK_FALSE(counting.lines().empty());
}

TEST_CASE("an asynchronous copy is a load from global memory, of lanes that read, and a store to shared memory") {
  const DeviceArray<float> in(std::vector<float>(32, 1.0f)), out(32);
  const simt::CountMemory counting;
  run(spread, {1, 32}, static_cast<const float*>(in.get()), out.get());
  if (!simt::CountMemory::available) return;
  const auto count = counting.kernel("spread");
  CHECK(count.requests == 2);
  CHECK(count.sectors == 2 + 4);
  CHECK(count.ideal_sectors == 2 + 4);
  CHECK(count.shared_requests == 2);
  CHECK(count.wavefronts == 2 * 2);
  CHECK(count.ideal_wavefronts == 2);
}

TEST_CASE("a fault names the kernel, the launch, the line, the block and the thread") {
  const DeviceArray<float> out(std::vector<float>(64, 0.0f));
  const auto report = fault_of(two_barriers<float>, {3, 64}, out.get());  // @launch of two_barriers
  CHECK(mentions(report, "two_barriers", "budget_test.cpp", at("launch of two_barriers"), "block (", "thread ("));
}

#if !defined(TYPEFORMER_SIMT_ASAN)
TEST_CASE("a misaligned access by ordinary code is what the race checker reports; a copy of bytes is none") {
  const DeviceArray<char> bytes(std::vector<char>(64, 0));
  const DeviceArray<float> out(32);
  const auto* from = static_cast<const char*>(bytes.get());
  CHECK(fault_of(read_copied, {1, 32}, from, out.get()).empty());
#if defined(TYPEFORMER_SIMT_RACECHECK)
  CHECK(mentions(fault_of(read_float, {1, 32}, from, out.get()), "misaligned access", at("misaligned float"),
                 "read_float"));
#else
  CHECK(fault_of(read_float, {1, 32}, from, out.get()).empty());
#endif
}
#endif

TEST_CASE("pointers that cuBLASLt was not told of") {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 4) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> data(std::vector<float>(256, 1.0f));
  const std::uint32_t sixteen = 16;
  const std::uint64_t room = 32 << 20;
  const auto choose = [&] {
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, description, layout, layout, layout, layout, preference, 1, &result,
                                         &found) == CUBLAS_STATUS_SUCCESS);
    return result;
  };
  const auto report = [&](const float* a, float* d, const cublasLtMatmulAlgo_t* algorithm, void* workspace) {
    const float one = 1, zero = 0;
    try {
      const auto status = cublasLtMatmul(handle, description, &one, a, layout, data.get(), layout, &zero, d, layout, d,
                                         layout, algorithm, workspace, workspace ? room : 0, nullptr);
      CHECK(status == CUBLAS_STATUS_SUCCESS);
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
    } catch (const simt::Fault& fault) {
      return std::string(fault.what());
    }
    return std::string();
  };
  float* const base = data.get();
  const auto any = choose();
  CHECK(report(base, base + 64, &any.algo, nullptr).empty());
  CHECK(mentions(report(base + 4, base + 64, &any.algo, nullptr), "A", "aligned to 256 bytes", "was chosen"));
  CHECK(mentions(report(base, base + 65, &any.algo, nullptr), "D", "aligned to 256 bytes", "was chosen"));
  CHECK(report(base + 4, base + 65, nullptr, nullptr).empty());  // chooses by itself
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, name, &sixteen, 4) == CUBLAS_STATUS_SUCCESS);
  const auto modest = choose();
  CHECK(report(base + 4, base + 68, &modest.algo, nullptr).empty());
  CHECK(mentions(report(base + 2, base + 68, &modest.algo, nullptr), "A", "aligned to 16 bytes"));
  const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(base) + 2);
  CHECK(mentions(report(odd, base + 64, nullptr, nullptr), "A", "aligned to 4 bytes", "its elements"));
  CHECK(mentions(report(base, base + 64, nullptr, base + 128 + 1), "workspace", "256"));
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
}
