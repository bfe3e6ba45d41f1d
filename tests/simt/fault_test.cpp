// Planted bugs: each is reported, with its source line, in every mode (in order, at random, sanitized, race-checked).
// What only the race checker can know is in race_test.cpp.
#include "support.hpp"

namespace {

__global__ void barriers_in_two_branches(int* out) {
  if (threadIdx.x < 64)
    __syncthreads();  // @upper
  else
    __syncthreads();  // @lower
  out[threadIdx.x] = 1;
}

__global__ void return_before_barrier(int* out) {
  if (threadIdx.x >= 60) return;
  __syncthreads();  // @early return
  out[threadIdx.x] = 1;
}

__global__ void return_after_others_wait(int* out) {
  if (threadIdx.x < 32) __syncthreads();  // @half barrier
  out[threadIdx.x] = 1;
}

__global__ void barrier_against_shuffle(int* out) {
  int value = 1;
  if (threadIdx.x < 16)
    __syncthreads();  // @barrier side
  else
    value += __shfl_xor_sync(all_lanes, value, 1);  // @shuffle side
  out[threadIdx.x] = value;
}

__global__ void missing_lanes(int* out) {
  int value = 1;
  if (threadIdx.x < 16) value = __shfl_xor_sync(all_lanes, value, 1);  // @missing
  out[threadIdx.x] = value;
}

__global__ void source_outside_mask(int* out) {
  int value = 1;
  if (threadIdx.x < 16) value = __shfl_down_sync(0xffffu, value, 8, 32);  // @outside
  out[threadIdx.x] = value;
}

__global__ void lane_outside_its_mask(int* out) {
  int value = 1;
  if (threadIdx.x < 17) value = __shfl_xor_sync(0xffffu, value, 1);  // @own mask
  out[threadIdx.x] = value;
}

__global__ void lanes_that_do_not_exist(unsigned* out) { out[threadIdx.x] = __ballot_sync(all_lanes, 1); }  // @no lanes

__global__ void two_operations(unsigned* out) {
  unsigned value = 1;
  if (threadIdx.x & 1u)
    value = __ballot_sync(all_lanes, 1);  // @operation one
  else
    value = __reduce_add_sync(all_lanes, value);  // @operation two
  out[threadIdx.x] = value;
}

__global__ void one_operation_on_two_lines(unsigned* out) {
  unsigned value = 1;
  if (threadIdx.x & 1u)
    value = __shfl_xor_sync(all_lanes, value, 1);  // @line one
  else
    value = __shfl_xor_sync(all_lanes, value, 1);  // @line two
  out[threadIdx.x] = value;
}

__global__ void two_masks(unsigned* out) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffffu : 0xffffffffu;
  out[threadIdx.x] = __ballot_sync(mask, 1);  // @masks
}

__global__ void odd_width(int* out) { out[threadIdx.x] = __shfl_sync(all_lanes, 1, 0, 12); }  // @width

__global__ void misaligned_load(const float* in, float* out) {
  const auto value = simt::load_vector<float4>(in + 1);  // @load
  out[threadIdx.x] = value.x;
}
__global__ void misaligned_store(float* out) { simt::store_vector(out + 1, make_float2(1, 2)); }  // @store
__global__ void misaligned_atomic(char* out) { atomicAdd(reinterpret_cast<int*>(out + 2), 1); }   // @atomic

// Asynchronous copies and matrices, one bug for each number.
__global__ void wrong_copies(const float* in, float* out, int bug) {
  auto* buffer = simt::dynamic_shared<float>();
  const unsigned i = threadIdx.x;
  if (bug == 0) simt::cp_async<16>(buffer + 4 * i + 1, in + 4 * i);      // @copy 0
  if (bug == 1) simt::cp_async<16>(buffer + 4 * i, in + 4 * i + 2);      // @copy 1
  if (bug == 2) simt::cp_async<16>(out + 4 * i, in + 4 * i);             // @copy 2
  if (bug == 3) simt::cp_async<4>(buffer + i, buffer + i + 32);          // @copy 3
  if (bug == 4) simt::cp_async<4>(buffer + i, in + i);                   // @copy 4
  if (bug == 5) simt::cp_async_bytes<8>(buffer + 2 * i, in + 2 * i, 9);  // @copy 5
  unsigned r[4] = {};
  if (bug == 6) simt::ldmatrix_x4(r, buffer + 4 * i + 1);  // @copy 6
  if (bug == 7) simt::ldmatrix_x4(r, in + 4 * i);          // @copy 7
  if (bug != 4) simt::cp_async_wait_all();
}

__global__ void too_much_static_shared(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, big, 13000);  // @static
  big[threadIdx.x] = 1;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void too_much_shared(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, some, 2000);  // @total
  some[threadIdx.x] = 1;
  out[threadIdx.x] = some[threadIdx.x];
}

__global__ void throws(float* out) {
  out[threadIdx.x] = 1;
  if (threadIdx.x == 3) throw 1;
}

#if !defined(TYPEFORMER_SIMT_ASAN)  // AddressSanitizer ends the program at such a store: sanitized_bugs.cpp
__global__ void store_outside_shared(float* out, unsigned size) {
  auto* dynamic = simt::dynamic_shared<float>();
  dynamic[threadIdx.x + (threadIdx.x == size ? 3u : 0u)] = 1;  // @store dynamic
  __syncthreads();
  out[threadIdx.x] = dynamic[0];
}

__global__ void store_outside_static(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, array, 31);
  array[threadIdx.x] = 1;  // @store static
  __syncthreads();
  out[threadIdx.x] = array[0];
}

#endif

__global__ void fill(float* out, int first, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[first + i] = static_cast<float>(i);  // @store global
}

__global__ void do_nothing() {}

}  // namespace

TEST_CASE("barriers that not all threads reach") {
  const DeviceArray<int> out(128);
  CHECK(mentions(fault_of(barriers_in_two_branches, {1, 128}, out.get()), "__syncthreads", at("upper"), at("lower"),
                 "divergent barriers"));
  CHECK(mentions(fault_of(return_before_barrier, {1, 64}, out.get()), at("early return"), "returned"));
  CHECK(mentions(fault_of(return_after_others_wait, {1, 64}, out.get()), at("half barrier"), "divergent barriers",
                 "returned"));
  CHECK(mentions(fault_of(barrier_against_shuffle, {1, 32}, out.get()), "deadlock", at("barrier side"),
                 at("shuffle side")));
}

TEST_CASE("lanes that do not agree about a warp operation") {
  const DeviceArray<int> out(32);
  const DeviceArray<unsigned> words(32);
  CHECK(mentions(fault_of(missing_lanes, {1, 32}, out.get()), at("missing"), "deadlock", "mask 0xffffffff",
                 "returned 0xffff0000"));
  CHECK(mentions(fault_of(source_outside_mask, {1, 32}, out.get()), "__shfl_down_sync", at("outside"), "reads lane"));
  CHECK(mentions(fault_of(lane_outside_its_mask, {1, 32}, out.get()), at("own mask"), "contains the calling lane",
                 "lane 16"));
  CHECK(mentions(fault_of(lanes_that_do_not_exist, {1, 24}, words.get()), at("no lanes"), "0x00ffffff"));
  CHECK(mentions(fault_of(two_operations, {1, 32}, words.get()), at("operation one"), at("operation two"),
                 "__ballot_sync", "__reduce_add_sync"));
  CHECK(
      mentions(fault_of(one_operation_on_two_lines, {1, 32}, words.get()), at("line one"), at("line two"), "mismatch"));
  CHECK(mentions(fault_of(two_masks, {1, 32}, words.get()), at("masks"), "0x00ffffff", "0xffffffff"));
  CHECK(mentions(fault_of(odd_width, {1, 32}, out.get()), at("width"), "12"));
}

TEST_CASE("misaligned accesses") {
  const DeviceArray<float> in(std::vector<float>(64)), out(64);
  const DeviceArray<char> bytes(std::vector<char>(64));
  CHECK(mentions(fault_of(misaligned_load, {1, 1}, static_cast<const float*>(in.get()), out.get()), "load_vector",
                 at("load"), "16-byte"));
  CHECK(mentions(fault_of(misaligned_store, {1, 1}, out.get()), "store_vector", at("store"), "8-byte"));
  CHECK(mentions(fault_of(misaligned_atomic, {1, 1}, bytes.get()), "atomicAdd", at("atomic")));
}

TEST_CASE("asynchronous copies and matrix loads with wrong addresses, and a copy nobody waits for") {
  const DeviceArray<float> in(std::vector<float>(256)), out(256);
  const char* expected[] = {
      "misaligned",   "misaligned",      "destination in shared memory",  "source in global memory", "without a wait",
      "source bytes", "16-byte aligned", "row addresses in shared memory"};
  for (int bug = 0; bug < 8; ++bug) {
    const auto report = fault_of(wrong_copies, {1, 32, 1024}, static_cast<const float*>(in.get()), out.get(), bug);
    CHECK(mentions(report, at("copy " + std::to_string(bug)), expected[bug], bug < 6 ? "cp_async" : "ldmatrix"));
  }
}

TEST_CASE("more shared memory than a device has") {
  const DeviceArray<float> out(32);
  CHECK(mentions(fault_of(too_much_static_shared, {1, 32}, out.get()), "48 KiB", "52000", at("static")));
  REQUIRE(simt::allow_shared(too_much_shared, 163 << 10) == cudaSuccess);
  CHECK(mentions(fault_of(too_much_shared, {1, 32, 160 << 10}, out.get()), "the device's limit", at("total")));
  CHECK(simt::allow_shared(too_much_shared, (163 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(simt::launch(do_nothing, {1, 32, (48 << 10) + 1}) == cudaErrorInvalidValue);
  REQUIRE(simt::allow_shared(do_nothing, 64 << 10) == cudaSuccess);
  CHECK(simt::launch(do_nothing, {1, 32, 64 << 10}) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("launch configurations that no device takes") {
  for (const dim3 block : {dim3(0), dim3(1025), dim3(32, 33), dim3(1, 1, 65)})
    CHECK(simt::launch(do_nothing, {1, block}) == cudaErrorInvalidConfiguration);
  for (const dim3 grid : {dim3(0), dim3(1, 65536), dim3(1, 1, 65536), dim3(1, 0)})
    CHECK(simt::launch(do_nothing, {grid, 32}) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("an exception in device code") {
  const DeviceArray<float> out(32);
  CHECK(mentions(fault_of(throws, {1, 32}, out.get()), "exception in device code", "fault_test.cpp"));
}

#if !defined(TYPEFORMER_SIMT_ASAN)
TEST_CASE("stores outside shared arrays and device allocations") {
  const DeviceArray<float> out(33);
#if defined(TYPEFORMER_SIMT_RACECHECK)  // knows the line of the store, else the launch's is told
  const std::string dynamic = at("store dynamic"), fixed = at("store static"), global = at("store global");
#else
  const std::string dynamic = at("launch dynamic"), fixed = at("launch static"), global = at("launch global");
#endif
  auto report = fault_of(store_outside_shared, {1, 32, 128}, out.get(), 31u);  // @launch dynamic
  CHECK(mentions(report, dynamic));
  report = fault_of(store_outside_static, {2, 32}, out.get());  // @launch static
  CHECK(mentions(report, fixed));
  report = fault_of(fill, {1, 32}, out.get(), 5, 29);  // @launch global
  CHECK(mentions(report, global, "at byte 132 of an allocation of 132 bytes"));
  CHECK(fault_of(fill, {1, 32}, out.get(), 1, 32).empty());
}
#endif

TEST_CASE("pointers to host memory, to freed memory, and to nothing") {
  float local[32];
  const auto report = fault_of(fill, {1, 32}, local, 0, 32);  // @host pointer
  CHECK(mentions(report, "launch", at("host pointer"), "host memory"));
  const DeviceArray<float> here(32);
  float* stale = nullptr;
  {
    const DeviceArray<float> gone(32);
    stale = gone.get();
  }
  CHECK(mentions(fault_of(fill, {1, 32}, stale, 0, 32), "outside every live allocation"));
  CHECK(fault_of(fill, {1, 32}, nullptr, 0, 0).empty());
}

TEST_CASE("host code that touches device memory") {
  const DeviceArray<float> array(std::vector<float>(32, 1.0f));
  volatile float* pointer = array.get();
  const auto report = simt::DeviceMemory::host_access([=] { pointer[3] = 2; });  // @touch
  CHECK(mentions(report, at("touch"), "host code touches device memory"));
  CHECK(simt::DeviceMemory::host_access([] {}).empty());
  CHECK(array.values()[3] == 1.0f);
}

TEST_CASE("after a fault the device works again") {
  const DeviceArray<int> out(128);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(fault_of(barriers_in_two_branches, {8, 128}, out.get()).empty());
    const DeviceArray<float> numbers(32);
    run(fill, {1, 32}, numbers.get(), 0, 32);
    CHECK(numbers.values()[31] == 31.0f);
  }
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
}
