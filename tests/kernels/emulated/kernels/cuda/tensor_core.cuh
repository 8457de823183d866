// SPDX-License-Identifier: Apache-2.0
// src/kernels/cuda/tensor_core.cuh in plain C++, by the layouts of the PTX ISA that are given
// there.
#pragma once

#include <array>

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

// A lane brings these to a matrix instruction, and gets `c`.
template <typename T>
struct MatrixOperands {
  const std::uint32_t* a;
  std::array<std::uint32_t, 2> b;
  float* c;
};

template <typename T>
float half_of(std::uint32_t pair, int which) {
  return to_float(T{static_cast<std::uint16_t>(pair >> (16 * which))});
}

template <typename T>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  MatrixOperands<T> mine{a, {b0, b1}, c};
  emulated::with_warp(&mine, [](void* const* lanes) {
    float left[16][16], right[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto& of = *static_cast<MatrixOperands<T>*>(lanes[lane]);
      const int g = lane / 4, t = lane % 4;
      for (int i = 0; i < 8; ++i) {  // register i/2, half i%2
        const int column = 2 * t + i % 2 + (i >= 4 ? 8 : 0);
        left[g + (i / 2 % 2) * 8][column] = half_of<T>(of.a[i / 2], i % 2);
        if (i < 4) {
          right[2 * t + i % 2 + (i / 2) * 8][g] =
              half_of<T>(of.b[static_cast<std::size_t>(i / 2)], i % 2);
        }
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      const auto& of = *static_cast<MatrixOperands<T>*>(lanes[lane]);
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
        for (int k = 0; k < 16; ++k) of.c[i] += left[row][k] * right[k][column];
      }
    }
  });
}

struct MatrixLoad {
  const void* row;
  std::uint32_t* to;
};

template <bool kTransposed>
void load_four(std::uint32_t (&to)[4], const void* row) {
  expect_aligned(row);
  MatrixLoad mine{row, to};
  emulated::with_warp(&mine, [](void* const* lanes) {
    for (int i = 0; i < 4; ++i) {
      std::uint16_t matrix[8][8];
      for (int r = 0; r < 8; ++r) {
        std::memcpy(matrix[r], static_cast<MatrixLoad*>(lanes[8 * i + r])->row, 16);
      }
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, t = 2 * (lane % 4);
        const std::uint32_t low = kTransposed ? matrix[t][g] : matrix[g][t];
        const std::uint32_t high = kTransposed ? matrix[t + 1][g] : matrix[g][t + 1];
        static_cast<MatrixLoad*>(lanes[lane])->to[i] = low | high << 16;
      }
    }
  });
}
inline void load_matrices(std::uint32_t (&to)[4], const void* row) { load_four<false>(to, row); }
inline void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  load_four<true>(to, row);
}

inline void start_copy(void* shared, const void* global, bool zeros) {
  emulated::start_copy(shared, global, zeros);
}
inline void end_copy_group() { emulated::end_copy_group(); }
template <int kLeft>
void wait_for_copies() {
  emulated::wait_for_copies(kLeft);
}

}  // namespace stepcast::cuda
