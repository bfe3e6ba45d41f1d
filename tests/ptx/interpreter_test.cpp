// The interpreter on PTX written by hand: every complaint is provoked, control flow and collectives give what they
// should.
#include <doctest/doctest.h>

#include <array>
#include <random>

#include "module.hpp"

namespace {

using namespace ptx;

constexpr std::size_t words = 64;

/// Registers, memory and what most kernels begin with: %r1 the second parameter, %r2 the thread, %rd1 the output, %rd3
/// the thread's word of it.
std::string kernel(const std::string& body, const std::string& parameters = ".param .u64 p0, .param .u32 p1",
                   const std::string& attributes = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"
         ".const .align 4 .u32 table[2] = {11, 12};\n"
         ".visible .entry k(" +
         parameters + ") " + attributes +
         "\n{\n.reg .pred %p<9>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<20>; .reg .b16 %h<9>;\n"
         ".shared .align 4 .b8 area[36]; .shared .align 8 .b8 barriers[16]; .local .align 16 .b8 stack[32];\n"
         "ld.param.u64 %rd1, [p0]; ld.param.u32 %r1, [p1]; mov.u32 %r2, %tid.x;\n"
         "mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;\n" +
         body + "\nret;\n}\n";
}
/// %r3: the thread's word of dynamic shared memory.
const std::string own_word = "mov.u32 %r3, dynamic; shl.b32 %r4, %r2, 2; add.u32 %r3, %r3, %r4; ";
/// %r5: that of the lane beside it.
const std::string next_word = "xor.b32 %r6, %r4, 4; mov.u32 %r5, dynamic; add.u32 %r5, %r5, %r6; ";

struct Run {
  std::array<u32, words> out{};
  std::string error;
};

Run run(const std::string& text, u32 threads = 32, u32 number = 0, u64 seed = 0, Arrival copies = Arrival::late) {
  Run result;
  try {
    Module module(text);
    module.options.max_steps = 200000;
    module.options.seed = seed;
    module.options.copies = copies;
    module.buffers.add(result.out.data(), sizeof result.out, "out");
    module.launch("k", {1}, {threads}, 256, result.out.data(), number);
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

void complains(const std::string& body, const std::string& expected, u32 threads = 32) {
  CAPTURE(body);
  const std::string error = run(kernel(body), threads).error;
  CHECK_MESSAGE(error.find(expected) != error.npos, "expected '" << expected << "', got '" << error << "'");
}

/// The first words of the output, in every order.
void gives(const std::string& body, const std::vector<u32>& expected, u32 threads = 32) {
  CAPTURE(body);
  for (u64 seed = 0; seed < 3; ++seed) {
    const Run result = run(kernel(body), threads, 7, seed, seed == 1 ? Arrival::early : Arrival::late);
    CHECK(result.error == "");
    CHECK(std::vector<u32>(result.out.begin(), result.out.begin() + static_cast<std::ptrdiff_t>(expected.size())) ==
          expected);
  }
}

TEST_CASE("complaints: memory") {
  complains("add.s64 %rd4, %rd1, 8; ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd4];", "misaligned 16-byte load");
  complains("add.s64 %rd4, %rd1, 2; st.global.u32 [%rd4], %r2;", "misaligned 4-byte store");
  complains("st.global.u32 [%rd3+256], %r2;", "0 bytes past the end of 'out'");
  complains("ld.global.u32 %r3, [%rd1+-4];", "4 bytes before 'out'");
  complains("mov.u32 %r3, area; st.shared.u32 [%r3+36], %r2;", "between variables");
  complains("mov.u32 %r3, dynamic; st.shared.u32 [%r3+256], %r2;", "outside the");
  complains("mov.u32 %r3, 0; ld.shared.u32 %r4, [%r3];", "outside the");
  complains("mov.u32 %r3, area; ld.shared.u32 %r4, [%r3];", "never written");
  complains("mov.u64 %rd4, stack; st.local.u32 [%rd4+32], %r2;", "local address");
  complains("mov.u64 %rd4, stack; ld.local.u32 %r3, [%rd4];", "never written");
  complains("ld.param.u64 %rd4, [p0+64];", "parameter address");
  complains("cvta.to.shared.u64 %rd4, %rd1;", "is no generic address of that space");
  complains("mov.u64 %rd4, area; cvta.shared.u64 %rd5, %rd4; cvta.to.global.u64 %rd6, %rd5;", "not a global one");
  complains("mov.u64 %rd4, area; cvta.shared.u64 %rd5, %rd4; cvt.u32.u64 %r3, %rd5; st.shared.u32 [%r3], %r2;",
            "outside the");
}
TEST_CASE("complaints: values never written") {
  complains("add.s32 %r3, %r4, 1;", "never written (%r4)");
  complains("setp.lt.u32 %p1, %r2, 5; @%p1 mov.u32 %r3, 1; st.global.u32 [%rd3], %r3;", "thread (5,0,0)");
  complains("mov.u32 %r3, %r9; st.global.u32 [%rd3], %r3;", "never written (%r3)");
  complains("@%p4 st.global.u32 [%rd3], %r2;", "never written (%p4)");
}
TEST_CASE("complaints: divergence") {
  complains("setp.lt.u32 %p1, %r2, 5; @%p1 bra A; bra B; A: bar.sync 0; B: shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;",
            "divergent barrier");
  complains("setp.lt.u32 %p1, %r2, 5; @%p1 ret; bar.sync 0;", "exited before");
  complains("setp.gt.u32 %p1, %r2, 31; @%p1 ret; bar.sync 0;", "exited before", 64);
  complains(
      ".loc 1 10 0\nsetp.gt.u32 %p1, %r2, 31; @%p1 bra A;\n.loc 1 11 0\nbar.sync 0; bra B; A:\n.loc 1 12 0\n"
      "bar.sync 0; B:",
      "different source lines", 64);
  complains("setp.lt.u32 %p1, %r2, 16; @%p1 shfl.sync.idx.b32 %r3, %r2, 20, 31, 0xffff;", "does not take part");
  complains("shfl.sync.idx.b32 %r3, %r2, 0, 31, 0xffff;", "not in its own member mask");
  complains("shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;", "names lanes that do not exist", 16);
  complains(
      "setp.lt.u32 %p1, %r2, 16; @%p1 bra A; bra B; A: shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; "
      "B: bar.warp.sync -1;",
      "wait at different places");
  complains(
      "setp.lt.u32 %p1, %r2, 16; mov.f32 %f1, 0f00000000; @!%p1 bra B; "
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f2,%f3,%f4,%f5},{%r2,%r2},{%r2},{%f1,%f1,%f1,%f1}; "
      "B: bar.warp.sync -1;",
      "wait at different places");
  complains(
      "setp.lt.u32 %p1, %r2, 16; mov.u32 %r3, dynamic; "
      "@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];",
      "under a predicate that differs");
  complains("setp.lt.u32 %p1, %r2, 32; @%p1 bra A; bar.sync 1, 64; bra B; A: bar.sync 2, 64; B: ret;", "deadlock", 64);
  complains("bar.sync 16;", "barrier number above 15");
  complains("A: bra A;", "max_steps");
  complains("ts: .branchtargets A, B; mov.u32 %r3, 2; brx.idx %r3, ts; A: ret; B: ret;", "branch index out of range");
}
TEST_CASE("complaints: asynchronous copies") {
  const std::string copy = own_word + "cp.async.ca.shared.global [%r3], [%rd3], 4; ";
  complains(copy + "cp.async.commit_group; ld.shared.u32 %r5, [%r3];", "still in flight");
  complains(copy + "cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r5, [%r3];", "still in flight");
  complains(copy + "cp.async.wait_group 0; ld.shared.u32 %r5, [%r3];", "still in flight");  // never committed
  complains(copy + "cp.async.commit_group; st.shared.u32 [%r3], %r2;", "still in flight");
  complains(copy + "cp.async.commit_group;", "never waited for");
  complains(copy + "cp.async.wait_all; " + next_word + "ld.shared.u32 %r7, [%r5];", "read after write");
  complains("mov.u32 %r3, dynamic; cp.async.cg.shared.global [%r3], [%rd1], 8;", "copy size");
  complains("mov.u32 %r3, dynamic; cp.async.ca.shared.global [%r3], [%rd1+4], 8;", "misaligned source");
  complains("mov.u32 %r3, dynamic; cp.async.ca.shared.global [%r3+4], [%rd1], 8;", "misaligned 8-byte store");
  complains("mov.u32 %r3, dynamic; cp.async.ca.shared.global [%r3], [%rd1+256], 4;", "out of bounds");
  complains("mov.u32 %r3, dynamic; mov.u32 %r4, 8; cp.async.ca.shared.global [%r3], [%rd1], 4, %r4;", "source bytes");
  complains("mov.u64 %rd4, area; cvta.shared.u64 %rd4, %rd4; cp.async.ca.shared.global [%rd4], [%rd1], 4;",
            "no address of shared memory");
}
TEST_CASE("complaints: mbarriers") {
  const std::string init =
      "mov.u32 %r3, barriers; setp.ne.u32 %p1, %r2, 0; @%p1 bra A; "
      "mbarrier.init.shared.b64 [%r3], 8; A: bar.sync 0; ";
  complains(init + "mbarrier.arrive.shared.b64 %rd4, [%r3+8];", "no initialized mbarrier");
  complains(init + "mbarrier.arrive.shared.b64 %rd4, [%r3], 9;", "more arrivals than its count");
  complains(init + "W: mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;", "pending arrivals 8");
  complains("mov.u32 %r3, barriers; mbarrier.init.shared.b64 [%r3], 0;", "count of 0");
  complains(
      "mov.u32 %r3, barriers; mov.u32 %r4, dynamic; mov.u32 %r5, 16; cp.async.bulk.shared::cluster.global."
      "mbarrier::complete_tx::bytes [%r4], [%rd1], %r5, [%r3];",
      "no initialized mbarrier");
  complains(init +
                "mov.u32 %r4, dynamic; mov.u32 %r5, 8; cp.async.bulk.shared::cluster.global."
                "mbarrier::complete_tx::bytes [%r4], [%rd1], %r5, [%r3];",
            "multiples of 16");
}
TEST_CASE("complaints: races") {
  const std::string store = own_word + "st.shared.u32 [%r3], %r2; ";
  complains(store + next_word + "ld.shared.u32 %r7, [%r5];", "read after write by thread 1 ");
  complains(store +
                "xor.b32 %r6, %r4, 128; mov.u32 %r5, dynamic; add.u32 %r5, %r5, %r6; setp.gt.u32 %p1, %r2, 31; "
                "@%p1 ld.shared.u32 %r7, [%r5];",
            "read after write by thread 0", 64);
  complains(
      "mov.u32 %r3, dynamic; setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r3], %r2; bar.sync 0; "
      "ld.shared.u32 %r4, [%r3]; setp.eq.u32 %p2, %r2, 40; @%p2 st.shared.u32 [%r3], %r2;",
      "write after read by thread", 64);
  complains("mov.u32 %r3, dynamic; st.shared.u32 [%r3], %r2;", "write after write by thread");
  complains(
      "mov.u32 %r3, area; setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r3], %r2; bar.warp.sync -1; "
      "atom.shared.add.u32 %r4, [%r3], 1; ld.shared.u32 %r5, [%r3];",
      "read after write by thread");
}
TEST_CASE("complaints: text that cannot be run names its line") {
  complains("frobnicate.u32 %r3, %r2;", "ptx: line 12: frobnicate.u32: unknown instruction");
  complains("add.s64 %rd4, %rd1, %r2;", "has 32 bits");
  complains("add.u32 %r3, %r2;", "takes 3 operands, has 2");
  complains("mov.u32 %r3, nothing;", "unknown name nothing");
  complains("bra NOWHERE;", "unknown label");
  complains("ld.global.frob.u32 %r3, [%rd1];", "unknown modifier .frob");
  complains("ld.global.L2::cache_hint.u32 %r3, [%rd1], %rd2;", "3 operands");
  complains("atom.global.add.v2.f32 {%f1,%f2}, [%rd1], {%f1,%f2};", "not supported");
  complains("red.global.min.f32 [%rd1], %f1;", "floats can only be added");
  complains("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r3,%r4}, {%r5,%r5,%r5,%r5}, {%r6,%r6}, {%r7,%r7};",
            "not supported");
  complains(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r5,%r5}, {%r6,%r6}, "
      "{%f1,%f2,%f3,%f4};",
      "operand 1 needs 4 registers");
  complains("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3}, [%r4];", "number of registers");
  complains("cvt.frob.s32.f32 %r3, %f1;", "unknown modifier");
  complains("barrier.cluster.arrive;", "clusters");
  complains("wgmma.fence.sync.aligned;", "unknown instruction");
  complains("call nothing, ();", "unknown function");
  complains("trap;", "trap");
  CHECK(run(".frobnicate").error == "ptx: line 1: unknown directive .frobnicate");
  CHECK(run("// nothing\n.visible .entry k(.param .u64 a\n").error.find("unexpected end") != std::string::npos);
}
TEST_CASE("complaints: launches") {
  std::array<u32, words> out{};
  const auto launch = [&](const std::string& text, u32 threads, u32 shared, auto... arguments) {
    Module module(text);
    module.buffers.add(out.data(), sizeof out, "out");
    try {
      module.launch("k", {1}, {threads}, shared, arguments...);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto says = [](const std::string& text, const char* expected) { return text.find(expected) != text.npos; };
  CHECK(says(launch(kernel(""), 32, 0, u64{1}), "1 arguments for 2 parameters"));
  CHECK(says(launch(kernel(""), 32, 0, u64{1}, u64{1}), "argument 1 has 8 bytes, the parameter 4"));
  CHECK(says(launch(kernel(""), 2048, 0, u64{1}, u32{1}), "invalid grid or block"));
  CHECK(says(launch(kernel(""), 32, 200 << 10, u64{1}, u32{1}), "exceed the limit"));
  CHECK(says(launch(kernel("", ".param .u64 p0, .param .u32 p1", ".maxntid 64, 1, 1"), 96, 0, u64{1}, u32{1}),
             "exceeds .maxntid 64"));
  Module module(kernel(""));
  CHECK_THROWS_WITH_AS(module.check("other"), "ptx: no entry other", Error);
  CHECK_THROWS_AS(module.variable("other"), Error);
  CHECK(*static_cast<u32*>(module.variable("table")) == 11);
}

TEST_CASE("control flow") {
  gives(
      "mov.u32 %r3, 0; mov.u32 %r4, 0; L: setp.ge.u32 %p1, %r4, %r2; @%p1 bra E; add.u32 %r3, %r3, %r4; "
      "add.u32 %r4, %r4, 1; bra L; E: shfl.sync.up.b32 %r5, %r3, 1, 0, -1; st.global.u32 [%rd3], %r5;",
      {0, 0, 0, 1, 3, 6, 10, 15, 21});
  gives(
      "setp.eq.u32 %p1, %r2, 3; mov.u32 %r3, 1; @%p1 bra C; J: vote.sync.ballot.b32 %r4, %p1, -1; "
      "redux.sync.add.s32 %r5, %r3, -1; add.u32 %r6, %r4, %r5; st.global.u32 [%rd3], %r6; bra E; "
      "C: mov.u32 %r3, 100; bra J; E:",
      {139, 139, 139, 139});
  gives(
      "and.b32 %r3, %r2, 3; ts: .branchtargets A, B, C, B; brx.idx %r3, ts; A: mov.u32 %r4, 10; bra E; "
      "B: mov.u32 %r4, 20; bra E; C: mov.u32 %r4, 30; E: st.global.u32 [%rd3], %r4;",
      {10, 20, 30, 20, 10});
  gives("ld.const.u32 %r3, [table+4]; st.global.u32 [%rd3], %r3;", {12, 12});
  gives("{ .reg .b32 t; add.u32 t, %r2, 1; { .reg .b32 t; mov.u32 t, 5; } st.global.u32 [%rd3], t; }", {1, 2, 3});
}
TEST_CASE("collectives") {
  gives(own_word + "st.shared.u32 [%r3], %r2; bar.warp.sync -1; " + next_word +
            "ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd3], %r7;",
        {1, 0, 3, 2});
  gives(
      "and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A; shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; bra B; "
      "A: shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; B: st.global.u32 [%rd3], %r4;",
      {1, 0, 3, 2, 5, 4});
  gives(
      "shr.u32 %r3, %r2, 3; shl.b32 %r3, %r3, 3; mov.u32 %r4, 0xff; shl.b32 %r4, %r4, %r3; "
      "redux.sync.max.u32 %r5, %r2, %r4; st.global.u32 [%rd3], %r5;",
      {7, 7, 7, 7, 7, 7, 7, 7, 15});
  gives(
      "shfl.sync.down.b32 %r3|%p1, %r2, 2, 0x1c03, -1; selp.b32 %r4, 100, 0, %p1; add.u32 %r3, %r3, %r4; "
      "st.global.u32 [%rd3], %r3;",
      {102, 103, 2, 3, 106, 107, 6, 7});
  gives("and.b32 %r3, %r2, 1; match.any.sync.b32 %r4, %r3, -1; st.global.u32 [%rd3], %r4;", {0x55555555, 0xaaaaaaaa});
  gives("elect.sync %r3|%p1, -1; selp.b32 %r4, 5, 6, %p1; st.global.u32 [%rd3], %r4;", {5, 6, 6});
  gives(
      "setp.lt.u32 %p1, %r2, 40; bar.red.popc.u32 %r3, 0, %p1; bar.red.and.pred %p2, 0, %p1; "
      "bar.red.or.pred %p3, 0, !%p1; selp.b32 %r4, 100, 0, %p2; selp.b32 %r5, 1000, 0, %p3; add.u32 %r3, %r3, %r4; "
      "add.u32 %r3, %r3, %r5; st.global.u32 [%rd3], %r3;",
      {1040, 1040}, 64);
  gives(own_word +
            "setp.lt.u32 %p1, %r2, 32; @%p1 bra A; st.shared.u32 [%r3+-128], %r2; bar.arrive 1, 64; bra E; "
            "A: bar.sync 1, 64; ld.shared.u32 %r5, [%r3]; st.global.u32 [%rd3], %r5; E:",
        {32, 33, 34}, 64);
}
TEST_CASE("predicates and packing") {
  gives(
      "setp.lt.u32 %p1|%p2, %r2, 3; setp.gt.and.u32 %p3, %r2, 0, !%p2; selp.b32 %r3, 5, 6, %p3; "
      "set.eq.u32.u32 %r4, %r2, 2; add.u32 %r3, %r3, %r4; st.global.u32 [%rd3], %r3;",
      {6, 5, 4, 6, 6});
  gives(
      "mov.pred %p1, -1; setp.eq.u32 %p2, %r2, 3; @%p2 mov.pred %p1, 0; mov.u32 %r3, 1; @%p1 mov.u32 %r3, 2; "
      "and.pred %p3, %p1, -1; selp.b32 %r4, 10, 20, %p3; add.u32 %r3, %r3, %r4; st.global.u32 [%rd3], %r3;",
      {12, 12, 12, 21, 12});
  gives(
      "mov.b64 %rd4, {%r2, %r1}; mov.b64 {%r3, %r4}, %rd4; add.u32 %r3, %r3, %r4; mov.b32 {%h1, %h2}, %r3; "
      "mov.b32 %r5, {%h2, %h1}; st.global.u32 [%rd3], %r5;",
      {0x70000, 0x80000, 0x90000});
}
TEST_CASE("instructions that only assembly reaches") {
  gives(
      "mov.u32 %r3, 0x80c0a001; bfe.s32 %r5, %r3, 28, 4; bfe.u32 %r6, %r3, 12, 8; prmt.b32 %r7, %r3, %r2, 0x9071; "
      "shf.l.wrap.b32 %r8, %r3, 0x80050301, 4; lop3.b32 %r9, %r3, 0x12345678, 0xff00ff00, 0x96; "
      "bfi.b32 %r10, 0xff, 0, 4, 4; shf.r.clamp.b32 %r11, %r3, 1, 40; st.global.v4.u32 [%rd1], {%r5,%r6,%r7,%r8}; "
      "st.global.v4.u32 [%rd1+16], {%r9,%r10,%r11,%r11};",
      {0xfffffff8, 0x0a, 0xff0100a0, 0x00503018, 0x80c0a001 ^ 0x12345678 ^ 0xff00ff00, 0xf0, 1}, 1);
  gives(
      "mov.f32 %f1, 0f40200000; cvt.rni.s32.f32 %r3, %f1; cvt.rpi.s32.f32 %r4, %f1; neg.f32 %f2, %f1; "
      "cvt.rmi.s32.f32 %r5, %f2; cvt.rzi.u32.f32 %r6, %f2; mov.f32 %f3, 0f7fc00000; cvt.rzi.s32.f32 %r7, %f3; "
      "mov.f32 %f4, 0f5f000000; cvt.rzi.s32.f32 %r8, %f4; cvt.sat.u8.s32 %r9, %r5; cvt.f64.f32 %rd4, %f3; "
      "cvt.rzi.s32.f64 %r10, %rd4; st.global.v4.u32 [%rd1], {%r3,%r4,%r5,%r6}; "
      "st.global.v4.u32 [%rd1+16], {%r7,%r8,%r9,%r10};",
      {2, 3, static_cast<u32>(-3), 0, 0, 0x7fffffff, 0, 0x80000000}, 1);
  gives(
      "mov.f32 %f1, 0f00000001; mov.f32 %f2, 0f00000002; add.f32 %f3, %f1, %f2; add.ftz.f32 %f4, %f1, %f2; "
      "st.global.v2.f32 [%rd1], {%f3,%f4};",
      {3, 0}, 1);
  gives(
      "mov.f32 %f1, 0f00000001; st.global.f32 [%rd1], %f1; red.global.add.f32 [%rd1], %f1; mov.u32 %r3, area; "
      "st.shared.f32 [%r3], %f1; red.shared.add.f32 [%r3], %f1; ld.shared.f32 %f2, [%r3]; st.global.f32 [%rd1+4], %f2;",
      {0, 2}, 1);
  gives(
      "mov.u32 %r3, 5; st.global.u32 [%rd1], %r3; atom.global.inc.u32 %r4, [%rd1], 5; atom.global.dec.u32 %r5, [%rd1], "
      "9; "
      "atom.global.cas.b32 %r6, [%rd1], 9, 44; atom.global.max.s32 %r7, [%rd1], -1; atom.global.exch.b32 %r8, [%rd1], "
      "3; "
      "st.global.v4.u32 [%rd1+16], {%r4,%r5,%r6,%r7}; st.global.u32 [%rd1+32], %r8;",
      {3, 0, 0, 0, 5, 0, 9, 44, 44}, 1);
  gives(
      "mov.b32 %r3, 0x3f804000; mov.b32 {%h1,%h2}, %r3; mov.b32 %r4, 0x33800000; mov.b32 {%h3,%h4}, %r4; "  // 2, 1; 0,
                                                                                                            // 2^-24
      "fma.rn.bf16 %h5, %h2, %h2, %h4; add.rn.bf16 %h6, %h1, %h2; mov.b32 %r5, {%h5,%h6}; st.global.u32 [%rd1], %r5;",
      {0x40403f80}, 1);
}

TEST_CASE("numbers: every half, and random floats to halves, as the compiler's own") {
  std::array<u32, words> out{};
  Module widen(kernel("add.u32 %r3, %r2, %r1; cvt.u16.u32 %h1, %r3; cvt.f32.f16 %f1, %h1; st.global.f32 [%rd3], %f1;"));
  Module narrow(
      kernel("ld.global.f32 %f1, [%rd3]; cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r3, %h1; st.global.u32 [%rd3], %r3;"));
  widen.buffers.add(out.data(), sizeof out, "out");
  narrow.buffers.add(out.data(), sizeof out, "out");
  int wrong = 0;
  for (u32 first = 0; first < 65536; first += words) {
    widen.launch("k", {1}, {words}, 0, out.data(), first);
    for (u32 i = 0; i < words; ++i) {
      const auto expected = static_cast<float>(std::bit_cast<_Float16>(static_cast<u16>(first + i)));
      const auto ours = std::bit_cast<float>(out[i]);
      wrong += !(ours == expected || (ours != ours && expected != expected));
    }
  }
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::array<u32, words> in{};
    for (u32& word : in) word = static_cast<u32>(round % 2 ? random() : 0x33000000u + random() % 0x15000000u);
    out = in;
    narrow.launch("k", {1}, {words}, 0, out.data(), u32{0});
    for (u32 i = 0; i < words; ++i) {
      const auto value = std::bit_cast<float>(in[i]);
      if (value == value) wrong += out[i] != std::bit_cast<u16>(static_cast<_Float16>(value));
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
