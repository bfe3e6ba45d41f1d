// Streams that use the same memory: what orders them, and what does not. The race checker reports the second; without
// it the same program runs the ordered cases only.
#include "streams.hpp"
#include "support.hpp"
#include "typeformer/simt/cublaslt.hpp"

namespace {

__global__ void fill_with(float* data, float value) { data[threadIdx.x] = value; }  // @filled
__global__ void sum_up(const float* data, float* sum) {
  sum[threadIdx.x] = data[threadIdx.x] + data[31 - threadIdx.x];  // @summed
}
__global__ void count_up(float* data) { atomicAdd(data, 1.0f); }

// Two streams that are not ordered by the null stream, and memory.
struct Case {
  OwnStream first{cudaStreamNonBlocking}, second{cudaStreamNonBlocking};
  OwnEvent event;
  DeviceArray<float> a{std::vector<float>(64, 0.0f)}, b{std::vector<float>(64, 0.0f)};

  void fill(const OwnStream& on, float value = 1) {
    CHECK(simt::launch(fill_with, {1, 32, 0, on.stream}, a.get(), value) == cudaSuccess);  // @fill launch
  }
  void read(const OwnStream& on) {
    CHECK(simt::launch(sum_up, {1, 32, 0, on.stream}, static_cast<const float*>(a.get()), b.get()) ==  // @read launch
          cudaSuccess);
  }
  void order() {
    CHECK(cudaEventRecord(event.event, first.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(second.stream, event.event, 0) == cudaSuccess);
  }
};

// What the race checker says of the code; a wait for everything is its end.
template <class Code>
std::string report_of(Code code) {
  std::string result;
  Case it;
  try {
    code(it);
    cudaDeviceSynchronize();
  } catch (const simt::Fault& fault) {
    result = fault.what();
  }
  cudaGetLastError();
  return result;
}

}  // namespace

TEST_CASE("streams that are ordered: by an event, by the host, by a question, by the null stream") {
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          it.order();
          it.read(it.second);
        }).empty());
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          CHECK(cudaStreamSynchronize(it.first.stream) == cudaSuccess);
          it.read(it.second);
        }).empty());
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          while (cudaStreamQuery(it.first.stream) == cudaErrorNotReady) continue;
          it.read(it.second);
        }).empty());
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          CHECK(cudaEventRecord(it.event.event, it.first.stream) == cudaSuccess);
          while (cudaEventQuery(it.event.event) == cudaErrorNotReady) continue;
          it.read(it.second);
        }).empty());
  CHECK(report_of([](Case& it) {
          const OwnStream blocking, other;
          it.fill(blocking);
          CHECK(cudaMemsetAsync(it.a.get(), 0, 8, nullptr) == cudaSuccess);
          it.read(other);
        }).empty());
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          it.order();
          const OwnStream third(cudaStreamNonBlocking);
          CHECK(cudaEventRecord(it.event.event, it.second.stream) == cudaSuccess);
          CHECK(cudaStreamWaitEvent(third.stream, it.event.event, 0) == cudaSuccess);
          it.read(third);
          CHECK(cudaStreamSynchronize(third.stream) == cudaSuccess);
          it.fill(it.first);
        }).empty());
}

TEST_CASE("streams that only read the same memory, or use different bytes of it, or atomics") {
  CHECK(report_of([](Case& it) {
          const DeviceArray<float> sum(32);
          it.read(it.first);
          CHECK(simt::launch(sum_up, {1, 32, 0, it.second.stream}, static_cast<const float*>(it.a.get()), sum.get()) ==
                cudaSuccess);
        }).empty());
  CHECK(report_of([](Case& it) {
          it.fill(it.first);
          CHECK(cudaMemsetAsync(it.a.get() + 32, 0, 128, it.second.stream) == cudaSuccess);
        }).empty());
  CHECK(report_of([](Case& it) {
          for (const auto* on : {&it.first, &it.second})
            CHECK(simt::launch(count_up, {4, 32, 0, on->stream}, it.a.get()) == cudaSuccess);
        }).empty());
  CHECK(report_of([](Case& it) {  // columns of one matrix
          const std::vector<float> rows(8, 1.0f);
          CHECK(cudaMemcpy2DAsync(it.a.get(), 16, rows.data(), 8, 8, 4, cudaMemcpyHostToDevice, it.first.stream) ==
                cudaSuccess);
          CHECK(cudaMemcpy2DAsync(it.a.get() + 2, 16, rows.data(), 8, 8, 4, cudaMemcpyHostToDevice, it.second.stream) ==
                cudaSuccess);
        })
            .empty());
}

TEST_CASE("branches of a graph that are joined, and graphs one after the other") {
  CHECK(report_of([](Case& it) {
          const OwnEvent join;
          const Graph graph(it.first.stream, [&](cudaStream_t stream) {
            it.fill(it.first);
            it.order();
            it.read(it.second);
            CHECK(cudaEventRecord(join.event, it.second.stream) == cudaSuccess);
            CHECK(cudaStreamWaitEvent(stream, join.event, 0) == cudaSuccess);
            it.fill(it.first, 3);
          });
          for (int k = 0; k < 3; ++k) graph.launch(it.first.stream);
          graph.launch(it.second.stream);
          it.read(it.second);
          CHECK(cudaStreamSynchronize(it.second.stream) == cudaSuccess);
          it.fill(it.first);
        }).empty());
}

TEST_CASE("memory freed and allocated again") {
  CHECK(report_of([](Case& it) {
          for (const auto* on : {&it.first, &it.second}) {
            void* memory = nullptr;
            CHECK(cudaMallocAsync(&memory, 128, on->stream) == cudaSuccess);
            CHECK(cudaMemsetAsync(memory, 0, 128, on->stream) == cudaSuccess);
            CHECK(cudaFreeAsync(memory, on->stream) == cudaSuccess);
            while (cudaStreamQuery(on->stream) == cudaErrorNotReady) continue;
          }
        }).empty());
}

#if defined(TYPEFORMER_SIMT_RACECHECK)
namespace {

// Whether every one of several runs, whose streams advance in different orders, is reported with all the pieces.
template <class Code, class... Pieces>
bool always_reported(Code code, const Pieces&... pieces) {
  for (int k = 0; k < 6; ++k)
    if (!mentions(report_of(code), pieces...)) return false;
  return true;
}

}  // namespace

TEST_CASE("kernels on two streams without an event") {
  CHECK(always_reported(
      [](Case& it) {
        it.fill(it.first);
        it.read(it.second);
      },
      "not ordered against", "fill_with", "sum_up", at("filled"), at("summed")));
  CHECK(always_reported(
      [](Case& it) {
        it.order();  // too early
        it.fill(it.first);
        it.read(it.second);
      },
      "not ordered against", at("filled"), at("summed")));
  CHECK(always_reported(
      [](Case& it) {
        it.fill(it.first);
        CHECK(cudaStreamSynchronize(it.second.stream) == cudaSuccess);  // the other one
        it.read(it.second);
      },
      "not ordered against"));
  CHECK(always_reported(
      [](Case& it) {
        it.fill(it.first);
        it.fill(it.second);
      },
      "write after write on another stream"));
  CHECK(always_reported(
      [](Case& it) {
        it.read(it.second);
        CHECK(cudaStreamSynchronize(it.first.stream) == cudaSuccess);
        it.fill(it.first);
      },
      "not ordered against", at("filled"), at("summed")));
}

TEST_CASE("copies, fills and products against kernels and each other") {
  CHECK(always_reported(
      [](Case& it) {
        CHECK(cudaMemset(it.a.get(), 0, 256) == cudaSuccess);  // for which the host does not wait
        it.read(it.first);
      },
      "cudaMemset", "sum_up", at("summed")));
  CHECK(always_reported(
      [](Case& it) {
        float host[32];
        it.fill(it.first);
        CHECK(cudaMemcpyAsync(host, it.a.get(), 128, cudaMemcpyDeviceToHost, it.second.stream) == cudaSuccess);
        cudaDeviceSynchronize();
      },
      "cudaMemcpyAsync", "fill_with", at("filled")));
  CHECK(always_reported(
      [](Case& it) {
        float host[32];
        it.fill(it.first);
        cudaMemcpy(host, it.a.get(), 128, cudaMemcpyDeviceToHost);  // on the null stream
      },
      "cudaMemcpy", "fill_with", at("filled")));
  CHECK(always_reported(
      [](Case& it) {
        CHECK(cudaMemsetAsync(it.a.get(), 0, 8, it.first.stream) == cudaSuccess);
        CHECK(cudaMemcpyAsync(it.a.get() + 1, it.b.get(), 8, cudaMemcpyDeviceToDevice, it.second.stream) ==
              cudaSuccess);
      },
      "write after write", "cudaMemsetAsync", "cudaMemcpyAsync"));
  CHECK(always_reported(
      [](Case& it) {
        void* pinned = nullptr;
        REQUIRE(cudaMallocHost(&pinned, 128) == cudaSuccess);
        for (const auto* on : {&it.first, &it.second})
          CHECK(cudaMemcpyAsync(pinned, it.a.get(), 128, cudaMemcpyDeviceToHost, on->stream) == cudaSuccess);
        CHECK(cudaFreeHost(pinned) == cudaErrorLaunchFailure);
        throw simt::Fault("", "", "", simt::runtime().last_fault);
      },
      "write after write", "cudaMemcpyAsync"));
  CHECK(always_reported(
      [](Case& it) {
        cublasLtHandle_t handle = nullptr;
        cublasLtMatmulDesc_t description = nullptr;
        cublasLtMatrixLayout_t layout = nullptr;
        REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 4) == CUBLAS_STATUS_SUCCESS);
        const float one = 1, zero = 0;
        it.fill(it.first);
        CHECK(cublasLtMatmul(handle, description, &one, it.a.get(), layout, it.b.get(), layout, &zero, it.b.get() + 32,
                             layout, it.b.get() + 32, layout, nullptr, nullptr, 0,
                             it.second.stream) == CUBLAS_STATUS_SUCCESS);
        cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulDescDestroy(description);
        cublasLtDestroy(handle);
      },
      "cublasLtMatmul", "fill_with", at("filled")));
}

TEST_CASE("memory freed on a stream while another one uses it") {
  CHECK(always_reported(
      [](Case& it) {
        void* memory = nullptr;
        CHECK(cudaMallocAsync(&memory, 128, it.first.stream) == cudaSuccess);
        CHECK(cudaMemsetAsync(memory, 0, 128, it.first.stream) == cudaSuccess);
        CHECK(cudaFreeAsync(memory, it.second.stream) == cudaSuccess);
      },
      "cudaMemsetAsync"));
}

TEST_CASE("branches of a graph without an event, and a graph beside a stream") {
  const auto branches = [](Case& it) {
    const OwnEvent join;
    const Graph graph(it.first.stream, [&](cudaStream_t stream) {
      it.order();
      it.fill(it.first);
      it.read(it.second);
      CHECK(cudaEventRecord(join.event, it.second.stream) == cudaSuccess);
      CHECK(cudaStreamWaitEvent(stream, join.event, 0) == cudaSuccess);
    });
    graph.launch(it.first.stream);
    cudaDeviceSynchronize();
  };
  CHECK(always_reported(branches, "not ordered against", at("filled"), at("summed")));
  const auto beside = [](Case& it) {
    const Graph graph(it.first.stream, [&](cudaStream_t) { it.fill(it.first); });
    graph.launch(it.first.stream);
    it.read(it.second);
    cudaDeviceSynchronize();
  };
  CHECK(always_reported(beside, "not ordered against", at("filled"), at("summed")));
}
#endif
