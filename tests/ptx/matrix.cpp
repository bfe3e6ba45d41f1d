// mma, ldmatrix and stmatrix. The maps from lanes to elements are those of the PTX ISA's figures.
#include "decoder.hpp"
#include "numbers.hpp"

namespace ptx {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("default", "avx2"), gnu::optimize("O3")]]
#endif
void multiply(const float* a, const float* b, double* d, int depth) {
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < depth; ++k) {
      const double factor = double{a[row * depth + k]};
      for (int column = 0; column < 8; ++column) d[row * 8 + column] += factor * double{b[k * 8 + column]};
    }
}

/// A is 16 x depth, B is depth x 8, both by rows. Accumulator i of a lane: row lane / 4, 8 further down from i = 2 on;
/// column 2 (lane % 4) + i % 2. Products are exact in double; the sum is rounded to float once.
void multiply_accumulate(Warp& warp, const Instruction& instruction, const float* a, const float* b, int depth) {
  double d[16 * 8];
  const auto at = [](u32 lane, int i) {
    return (lane / 4 + (i < 2 ? 0 : 8)) * 8 + lane % 4 * 2 + static_cast<u32>(i & 1);
  };
  for (int i = 0; i < 4; ++i) {
    const float* c = warp.data<float>(instruction.operands[static_cast<int>(instruction.x[0]) + i]);
    for (u32 lane = 0; lane < warp_size; ++lane) d[at(lane, i)] = double{c[lane]};
  }
  multiply(a, b, d, depth);
  for (int i = 0; i < 4; ++i) {
    float* result = warp.data<float>(instruction.operands[i]);
    for (u32 lane = 0; lane < warp_size; ++lane) result[lane] = static_cast<float>(d[at(lane, i)]);
  }
}

/// visit(lane, which half, value) for both halves of a register.
template <auto wide, class Visit>
void halves(const Warp& warp, const Slot& slot, Visit visit) {
  const u32* words = warp.data<u32>(slot);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    visit(lane, u32{0}, wide(static_cast<u16>(words[lane])));
    visit(lane, u32{1}, wide(static_cast<u16>(words[lane] >> 16)));
  }
}

/// Elements of A lie in rows lane / 4 (8 further down in odd registers) and columns 2 (lane % 4) + half (8 further
/// right from register 2 on); of B in rows 2 (lane % 4) + half (8 further down in register 1) and column lane / 4.
template <auto wide, int depth>
void execute_half_product(Warp& warp, const Instruction& instruction, u32) {
  float a[16 * depth], b[depth * 8];
  constexpr int a_registers = depth / 4, b_registers = depth / 8;
  for (u32 i = 0; i < a_registers; ++i)
    halves<wide>(warp, instruction.operands[4 + i], [&](u32 lane, u32 half, float value) {
      a[(lane / 4 + (i & 1 ? 8 : 0)) * depth + lane % 4 * 2 + half + (i & 2 ? 8 : 0)] = value;
    });
  for (u32 i = 0; i < b_registers; ++i)
    halves<wide>(warp, instruction.operands[4 + a_registers + i],
                 [&](u32 lane, u32 half, float value) { b[(lane % 4 * 2 + half + 8 * i) * 8 + lane / 4] = value; });
  multiply_accumulate(warp, instruction, a, b, depth);
}

/// tf32, m16n8k8: rows of A as above, columns lane % 4 (4 further right from register 2 on).
void execute_tf32_product(Warp& warp, const Instruction& instruction, u32) {
  float a[16 * 8], b[8 * 8];
  const auto value = [&](u32 operand, u32 lane) {
    return bits<float>(warp.data<u32>(instruction.operands[operand])[lane] & 0xffffe000u);
  };
  for (u32 lane = 0; lane < warp_size; ++lane) {
    for (u32 i = 0; i < 4; ++i) a[(lane / 4 + (i & 1 ? 8 : 0)) * 8 + lane % 4 + (i & 2 ? 4 : 0)] = value(4 + i, lane);
    for (u32 i = 0; i < 2; ++i) b[(lane % 4 + 4 * i) * 8 + lane / 4] = value(8 + i, lane);
  }
  multiply_accumulate(warp, instruction, a, b, 8);
}

struct Product {
  const char *shape, *type;
  std::size_t a_registers, b_registers;
  Execute execute;
};
const Product products[] = {{"m16n8k16", "bf16", 4, 2, execute_half_product<from_bf16, 16>},
                            {"m16n8k16", "f16", 4, 2, execute_half_product<from_half, 16>},
                            {"m16n8k8", "bf16", 2, 1, execute_half_product<from_bf16, 8>},
                            {"m16n8k8", "f16", 2, 1, execute_half_product<from_half, 8>},
                            {"m16n8k8", "tf32", 4, 2, execute_tf32_product}};

std::size_t registers_in(const Operand& operand) {
  return operand.kind == Operand::Kind::vector ? operand.parts.size() : 1;
}

}  // namespace

void decode_matrix_product(Decoder& d) {  // mma.sync.aligned.<shape>.row.col.f32.<a>.<b>.f32
  d.expect_operands(4, 4);
  const auto& w = d.words;
  if (w.size() != 10 || w[1] != "sync" || w[2] != "aligned" || w[4] != "row" || w[5] != "col" || w[6] != "f32" ||
      w[9] != "f32" || w[7] != w[8])
    d.fail("this form is not supported");
  const auto* product = std::find_if(std::begin(products), std::end(products),
                                     [&](const Product& p) { return w[3] == p.shape && w[7] == p.type; });
  if (product == std::end(products)) d.fail("this shape is not supported");
  const std::size_t wanted[] = {4, product->a_registers, product->b_registers, 4};
  for (std::size_t i = 0; i < 4; ++i)
    if (registers_in(d.operand(i)) != wanted[i])
      d.fail("operand " + std::to_string(i) + " needs " + std::to_string(wanted[i]) + " registers");
  d.write_all(d.operand(0), 4);
  for (std::size_t i = 1; i < 4; ++i) d.read_all(d.operand(i), 4);
  d.instruction.kind = Kind::whole_warp;
  d.instruction.x[0] = static_cast<u32>(4 + product->a_registers + product->b_registers);
  d.instruction.execute = product->execute;
}

// --- ldmatrix, stmatrix ---------------------------------------------------------------------------------------------

namespace {

enum MatrixField { matrix_space, matrix_count, matrix_transposed };

/// Matrix i has its rows at the addresses of lanes 8i to 8i + 7. A lane holds of each matrix row lane / 4, columns
/// 2 (lane % 4) and the next, or those elements of the transpose.
template <bool store>
void execute_matrix_access(Warp& warp, const Instruction& instruction, u32) {
  const Slot& address = instruction.operands[store ? 0 : instruction.count - 1];
  for (u32 i = 0; i < instruction.x[matrix_count]; ++i) {
    u8* rows[8];
    for (u32 row = 0; row < 8; ++row) {
      const int lane = static_cast<int>(i * 8 + row);
      rows[row] = warp.block->access(warp, instruction, lane, static_cast<Space>(instruction.x[matrix_space]),
                                     address_of(warp, address, instruction.displacement, lane), 16, store);
    }
    u32* words = warp.data<u32>(instruction.operands[i + (store ? 1 : 0)]);
    for (u32 lane = 0; lane < warp_size; ++lane)
      for (u32 half = 0; half < 2; ++half) {
        u32 row = lane / 4, column = lane % 4 * 2 + half;
        if (instruction.x[matrix_transposed]) std::swap(row, column);
        u8* element = reinterpret_cast<u8*>(&words[lane]) + 2 * half;
        if constexpr (store)
          std::memcpy(rows[row] + 2 * column, element, 2);
        else
          std::memcpy(element, rows[row] + 2 * column, 2);
      }
  }
}

}  // namespace

void decode_matrix_access(Decoder& d) {  // ldmatrix.sync.aligned.m8n8.<count>[.trans].shared.b16
  d.expect_operands(2, 2);
  d.allow({"m8n8", "x1", "x2", "x4", "trans"});
  const bool store = d.words[0] == "stmatrix";
  const u32 count = d.has("x4") ? 4 : d.has("x2") ? 2 : d.has("x1") ? 1 : 0;
  if (!count || !d.has("m8n8") || !d.has("aligned") || d.words.back() != "b16") d.fail("unknown form");
  if (registers_in(d.operand(store)) != count) d.fail("the number of registers does not fit");
  if (!store) d.write_all(d.operand(0), 4);
  d.read_address(d.operand(!store), d.instruction.displacement);
  if (store) d.read_all(d.operand(1), 4);
  d.instruction.kind = Kind::whole_warp;
  d.instruction.x[matrix_space] = static_cast<u32>(d.space());
  d.instruction.x[matrix_count] = count;
  d.instruction.x[matrix_transposed] = d.has("trans");
  d.instruction.execute = store ? execute_matrix_access<true> : execute_matrix_access<false>;
}

}  // namespace ptx
