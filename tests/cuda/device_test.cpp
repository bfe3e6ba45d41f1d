// The CUDA device: memory, streams, errors, uploaded lists; and the choices of tuning.hpp.
#include "device.hpp"
#include "support.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using namespace typeformer::cuda::detail;

TEST_CASE("device: memory goes there and back") {
  const std::vector<double> numbers{1, -2, 0.5, 3};
  CHECK(device::round_trip(numbers, true) == numbers);
  CHECK(device::round_trip(numbers, false) == numbers);
  CHECK(device::round_trip({}, true).empty());
}
TEST_CASE("device: host memory may be reused after an upload") {
  CHECK(device::reused_after_upload(false) == 1);
  CHECK(device::reused_after_upload(true) == 1);
}
TEST_CASE("device: errors name the operation") {
  CHECK(device::complaint("grid limit") == "cuda::Device: grid limit: expected 1 to 2147483647 blocks, got 0");
  CHECK(device::complaint("memory") ==
        "cuda::Device::allocate: 1125899906842624 bytes: expected success, got out of memory");
  CHECK(device::complaint("copy") == "cuda::Device::upload: copy: expected success, got invalid argument");
  CHECK(device::complaint("nothing") == "none");
}
TEST_CASE("device: equal lists are uploaded once") {
  const auto lists = device::upload_lists();
  CHECK(lists.contents == "efgh");
  CHECK(lists.kept);
}

TEST_CASE("device: a list that could not be uploaded is not remembered") {
  CHECK(device::list_after_failure() == "abcd");
}

TEST_CASE("device: all memory comes from the caller's functions, and goes back to them") {
  const std::string wrong = device::callers_memory();
  CHECK_MESSAGE(wrong.empty(), wrong);
  CHECK(device::complaint("half of the functions") ==
        "cuda::Device: release: expected a function, as the other one is given, got none");
  CHECK(device::complaint("no memory of the caller's") ==
        "cuda::Device::allocate: 5 bytes: expected memory to be available, got null");
  CHECK(device::complaint("odd memory of the caller's") ==
        "cuda::Device::allocate: memory: expected an address that is a multiple of 256, got another one");
}
TEST_CASE("device: released memory serves again") {
  const std::string wrong = device::kept_memory();
  CHECK_MESSAGE(wrong.empty(), wrong);
}
TEST_CASE("device: recorded operations run again on what lies in the memory then") {
  const std::string wrong = device::replayed();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

TEST_CASE("device: operations of the null stream are not recorded") {
  const std::string wrong = device::not_recorded();
  CHECK_MESSAGE(wrong.empty(), wrong);
}
TEST_CASE("device: the caller captures its stream") {
  const std::string wrong = device::captured_by_the_caller();
  CHECK_MESSAGE(wrong.empty(), wrong);
}

TEST_CASE("device: its GPU is the one it was made on, whatever is current later") {
  const std::string wrong = device::with_another_gpu_current();
  if (wrong == "one GPU")
    MESSAGE("not tested: this machine has one GPU");
  else
    CHECK_MESSAGE(wrong.empty(), wrong);
}

TEST_CASE("tuning: shared memory of every attention kernel but one fits every GPU") {
  const auto list = device::shared_memory();
  CHECK(list.size() == 32);
  for (const auto& [kernel, bytes] : list)  // the one that attend_backward's comment names
    CHECK_MESSAGE((bytes <= shared_memory_of_all) == (kernel != "queries with a trained bias bf16 256"),
                  kernel << ": " << bytes << " bytes");
}
TEST_CASE("tuning: tiles have whole warps, and columns that the products can take") {
  for (int head_dim = 1; head_dim <= 256; ++head_dim) {
    const int depth = attention_depth(head_dim);
    REQUIRE(depth >= head_dim);
    for (const auto pass : {AttentionPass::forward, AttentionPass::queries, AttentionPass::keys}) {
      const AttentionTile mma = tensor_core_tile(depth, pass), fma = float_tile(depth, pass);
      CHECK((mma.columns % 16 == 0 && mma.rows % 16 == 0 && mma.thread_rows == 2));
      CHECK((fma.columns % 4 == 0 && fma.rows % (8 * fma.thread_rows) == 0));
      for (const AttentionTile& tile : {mma, fma}) CHECK((tile.threads() >= 64 && tile.threads() <= 256));
    }
  }
  CHECK(attention_depth(257) == 0);
}
TEST_CASE("tuning: rows have a warp or a block, within a block's limits") {
  for (int width = 1; width < 40000; width += width < 5000 ? 1 : 997)
    for (const int elements : {1, 4, 8}) {
      const RowShape shape = row_shape(width, elements);
      CHECK(shape.threads % 32 == 0);
      CHECK((shape.threads == 32 || shape.rows == 1));
      CHECK(shape.threads * shape.rows <= 512);
    }
}
TEST_CASE("tuning: slabs cover the rows and stay few") {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{31}, std::int64_t{4096}, std::int64_t{100000000000}}) {
    const std::int64_t slabs = (rows + rows_per_slab(rows) - 1) / rows_per_slab(rows);
    CHECK((slabs >= 1 && slabs <= 128));
  }
}

}  // namespace
