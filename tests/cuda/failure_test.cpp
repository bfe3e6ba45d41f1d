// Each call of CUDA and cuBLASLt fails in turn while a model is made, reads a prompt, decodes and trains: an Error that
// names the operation, no leak, and the same objects work afterwards. Every third call where AddressSanitizer looks on.
#include "failure.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "mode.hpp"
#include "support.hpp"

namespace {

void check(const std::string& phase, std::uint64_t least_calls, const std::vector<std::string>& functions) {
  for (const bool sticky : {false, true}) {
    CAPTURE(sticky);
    const bool all = support::random_cases(10) == 10;
    const failure::Report report = failure::fail_calls(phase, sticky, all ? 1 : 3);
    CHECK(report.calls >= least_calls);
    for (const std::string& function : functions)
      if (all) CHECK_MESSAGE(std::count(report.functions.begin(), report.functions.end(), function) == 1, function);
    for (const std::string& wrong : report.wrong) FAIL_CHECK(wrong);
    for (const std::string& error : report.errors) CHECK_MESSAGE(error.find(": expected ") != std::string::npos, error);
    if (std::getenv("TYPEFORMER_VERBOSE"))
      for (const std::string& error : report.errors) std::printf("%s: %s\n", phase.c_str(), error.c_str());
  }
}

}  // namespace

TEST_CASE("failures: while a model is made") {
  check("load", 50, {"cudaMalloc", "cudaMemcpyAsync", "cudaMemsetAsync"});
}
TEST_CASE("failures: while a prompt is read") {
  check("prefill", 100, {"cudaMalloc", "cudaLaunchKernel", "cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic"});
}
TEST_CASE("failures: while it decodes") {
  check("decode", 60,
        {"cudaLaunchKernel", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
         "cudaGraphLaunch", "cublasLtMatmul"});
}
TEST_CASE("failures: while it trains") { check("training", 200, {"cudaLaunchKernel", "cublasLtMatmul"}); }
