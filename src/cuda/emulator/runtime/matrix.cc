/*!
 * \file matrix.cc
 * \brief ldmatrix, stmatrix and mma: operands of 32 lanes are collected, then computed once.
 */
#include <cmath>
#include <cstring>
#include <string>

#include "block.h"
#include "memory.h"
#include "minifloat.h"
#include "report.h"
#include "warp.h"

namespace tl_emu {
namespace {

constexpr int kMaxM = 16, kMaxN = 8, kMaxK = 64;

/*! \brief Warp-wide matrix instructions need every lane. */
void RequireFullWarp(const Group& group) {
  if (group.size() == kWarpSize) return;
  Fail("warp mask", BlockText() + ", warp " + std::to_string(group.first()->warp()) + ": " +
                        NameOf(group.first()->request.op) + " with only " +
                        std::to_string(group.size()) + " lanes, at " + At(group.first()->pc));
}

void RequireAligned(const Thread& thread, const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % kMatrixRowBytes == 0) return;
  Fail("alignment", ThreadText(thread) +
                        ": the row of a matrix is not aligned to 16 bytes, at " + At(thread.pc));
}

/*! \brief Where element `j` of register-pair position of a lane lies: row and column. */
void Position(unsigned lane, bool transposed, unsigned j, unsigned* row, unsigned* column) {
  *row = transposed ? lane % 4 * 2 + j : lane / 4;
  *column = transposed ? lane / 4 : lane % 4 * 2 + j;
}

template <bool kLoad>
void MoveMatrices(const Group& group) {
  RequireFullWarp(group);
  unsigned count = static_cast<unsigned>(group.first()->request.qualifiers >> 1);
  bool transposed = (group.first()->request.qualifiers & 1) != 0;
  OnMatrixAccess(group, count, !kLoad);
  for (unsigned i = 0; i < count; ++i) {
    char* rows[8];
    for (unsigned r = 0; r < 8; ++r) {
      const Thread& thread = *group[8 * i + r];
      const void* address = kLoad ? thread.request.source : thread.request.data;
      RequireAligned(thread, address);
      rows[r] = static_cast<char*>(const_cast<void*>(address));
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const void* registers = kLoad ? group[lane]->request.data : group[lane]->request.source;
      char* pair = static_cast<char*>(const_cast<void*>(registers)) + 4 * i;
      for (unsigned j = 0; j < 2; ++j) {
        unsigned row, column;
        Position(lane, transposed, j, &row, &column);
        char* memory = rows[row] + 2 * column;
        std::memcpy(kLoad ? pair + 2 * j : memory, kLoad ? memory : pair + 2 * j, 2);
      }
    }
  }
}

constexpr int BitsOf(Element type) {
  switch (type) {
    case Element::kF64:
      return 64;
    case Element::kTF32:
    case Element::kF32:
    case Element::kS32:
      return 32;
    case Element::kF16:
    case Element::kBF16:
      return 16;
    case Element::kS4:
    case Element::kU4:
      return 4;
    default:
      return 8;
  }
}

template <Element kType>
double DecodeWord(uint64_t word) {
  const auto low = static_cast<uint32_t>(word);
  switch (kType) {
    case Element::kF16:
      return DecodeFloat<5, 10, Special::kIeee>(low);
    case Element::kBF16:
      return BitsToFloat(low << 16);
    case Element::kTF32:
      return BitsToFloat(low & 0xffffe000u);
    case Element::kF64: {
      double value;
      std::memcpy(&value, &word, sizeof(value));
      return value;
    }
    case Element::kS8:
      return static_cast<int8_t>(low);
    case Element::kS4:
      return static_cast<int>(low ^ 8u) - 8;
    case Element::kU8:
    case Element::kU4:
      return low;
    case Element::kE4M3:
      return DecodeFloat<4, 3, Special::kNanOnly>(low);
    case Element::kE5M2:
      return DecodeFloat<5, 2, Special::kIeee>(low);
    case Element::kF32:
      return BitsToFloat(low);
    case Element::kS32:
      return static_cast<int32_t>(low);
  }
  return 0;
}

/*! \brief Elements of packed registers of one type. */
template <Element kType>
struct Packed {
  /*! \brief Element number `i`. */
  static double Get(const void* data, int i) {
    constexpr int kBits = BitsOf(kType);
    uint64_t word = 0;
    if (kBits == 4) {
      word = static_cast<const unsigned char*>(data)[i / 2] >> (i % 2 * 4) & 15u;
    } else {
      std::memcpy(&word, static_cast<const char*>(data) + i * (kBits / 8), kBits / 8);
    }
    return DecodeWord<kType>(word);
  }
};

/*! \brief Call `function` with the `Packed` of a type. */
template <class Function>
void WithType(Element type, Function function) {
  switch (type) {
#define TL_TYPE(name) \
  case Element::name: \
    return function(Packed<Element::name>());
    TL_TYPE(kF16)
    TL_TYPE(kBF16)
    TL_TYPE(kTF32)
    TL_TYPE(kF64)
    TL_TYPE(kS8)
    TL_TYPE(kU8)
    TL_TYPE(kS4)
    TL_TYPE(kU4)
    TL_TYPE(kE4M3)
    TL_TYPE(kE5M2)
    TL_TYPE(kF32)
    TL_TYPE(kS32)
#undef TL_TYPE
  }
}

void Encode(Element type, double value, void* data, int i) {
  switch (type) {
    case Element::kF16: {
      uint16_t bits = EncodeHalf(value);
      std::memcpy(static_cast<char*>(data) + 2 * i, &bits, 2);
      return;
    }
    case Element::kF64:
      std::memcpy(static_cast<char*>(data) + 8 * i, &value, 8);
      return;
    case Element::kS32: {
      // Sums of products of at most 8 bits are exact in a double; they wrap as on the device.
      auto bits = static_cast<uint32_t>(static_cast<int64_t>(value));
      std::memcpy(static_cast<char*>(data) + 4 * i, &bits, 4);
      return;
    }
    default: {
      auto rounded = static_cast<float>(value);
      std::memcpy(static_cast<char*>(data) + 4 * i, &rounded, 4);
      return;
    }
  }
}

/*!
 * \brief The operand layouts of all mma instructions.
 *
 * A register (64 bits for f64) holds `e` elements that follow each other along k. Registers of A
 * go down the rows in steps of 8 first, then along k; those of B along k.
 */
struct Layout {
  int e, a_registers, b_registers, c_elements, m;

  explicit Layout(const MmaShape& shape) : m(shape.m) {
    e = shape.a == Element::kF64 ? 1 : 32 / BitsOf(shape.a);
    b_registers = shape.k / (4 * e);
    a_registers = b_registers * (shape.m / 8);
    c_elements = shape.m / 4;
  }
  int ARow(unsigned lane, int i) const { return static_cast<int>(lane / 4) + i / e % (m / 8) * 8; }
  int KOf(unsigned lane, int i, int step) const {
    return i / e / step * 4 * e + static_cast<int>(lane % 4) * e + i % e;
  }
  int CRow(unsigned lane, int i) const { return static_cast<int>(lane / 4) + i / 2 * 8; }
  int CColumn(unsigned lane, int i) const { return static_cast<int>(lane % 4) * 2 + i % 2; }
};

}  // namespace

void LoadMatrix(const Group& group) { MoveMatrices<true>(group); }
void StoreMatrix(const Group& group) { MoveMatrices<false>(group); }

void MultiplyMatrices(const Group& group) {
  RequireFullWarp(group);
  const auto& shape = *reinterpret_cast<const MmaShape*>(group.first()->request.qualifiers);
  Layout layout(shape);
  double a[kMaxM][kMaxK], b[kMaxK][kMaxN];
  WithType(shape.a, [&](auto packed) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (int i = 0; i < layout.a_registers * layout.e; ++i) {
        a[layout.ARow(lane, i)][layout.KOf(lane, i, layout.m / 8)] =
            packed.Get(group[lane]->request.source, i);
      }
    }
  });
  WithType(shape.b, [&](auto packed) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      for (int i = 0; i < layout.b_registers * layout.e; ++i) {
        b[layout.KOf(lane, i, 1)][lane / 4] = packed.Get(group[lane]->request.second, i);
      }
    }
  });
  double product[kMaxM][kMaxN] = {};
  for (int i = 0; i < shape.m; ++i) {
    for (int p = 0; p < shape.k; ++p) {
      for (int j = 0; j < kMaxN; ++j) product[i][j] += a[i][p] * b[p][j];
    }
  }
  WithType(shape.d, [&](auto packed) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      void* c = group[lane]->request.data;
      for (int i = 0; i < layout.c_elements; ++i) {
        double sum = packed.Get(c, i) + product[layout.CRow(lane, i)][layout.CColumn(lane, i)];
        Encode(shape.d, sum, c, i);
      }
    }
  });
}

}  // namespace tl_emu
