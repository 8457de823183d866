// SPDX-License-Identifier: Apache-2.0
// Tests of the emulator itself: it computes what the hardware's documents say, and finds the faults
// it exists to find.
#include "kernels/emulated/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/tensor_core.cuh"
#include "kernels/numbers.h"

namespace stepcast::emulated {
namespace {

TEST(EmulatedBlock, ABarrierOrdersWhatThreadsWrite) {
  std::vector<int> written(96, -1), read(96);
  run_block(96, 0, [&] {
    written[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    read[threadIdx.x] = written[95 - threadIdx.x];
  });
  for (int i = 0; i < 96; ++i) EXPECT_EQ(read[static_cast<std::size_t>(i)], 95 - i);
}

TEST(EmulatedBlock, AMissingBarrierShows) {
  std::vector<int> written(64, -1), read(64);
  run_block(64, 0, [&] {
    written[threadIdx.x] = static_cast<int>(threadIdx.x);
    read[threadIdx.x] = written[63 - threadIdx.x];
  });
  EXPECT_EQ(std::count(read.begin(), read.end(), -1), 32);
}

TEST(EmulatedBlock, ThreadsThatWaitForEverAreAnError) {
  const auto thread = [] {
    if (threadIdx.x == 5) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  };
  EXPECT_THROW(run_block(32, 0, thread), std::logic_error);
}

TEST(EmulatedBlock, LanesThatMeetInDifferentOperationsAreAnError) {
  const auto thread = [] {
    if (threadIdx.x % 2 == 0) {
      __ballot_sync(cuda::kAllLanes, true);
    } else {
      __syncwarp();
    }
  };
  EXPECT_THROW(run_block(32, 0, thread), std::logic_error);
}

TEST(EmulatedBlock, WhatAThreadThrowsIsThrown) {
  alignas(16) unsigned char bytes[32] = {};
  EXPECT_THROW(run_block(32, 0, [&] { cuda::load_chunk(bytes + 4); }), std::logic_error);
  EXPECT_THROW(run_block(32, 0, [&] { start_copy(bytes + 8, bytes, false); }), std::logic_error);
  EXPECT_THROW(run_block(33, 0, [] {}), std::logic_error);
}

TEST(EmulatedBlock, ShufflesAndVotesCrossTheWarp) {
  std::vector<unsigned> exchanged(64), votes(64);
  run_block(64, 0, [&] {
    exchanged[threadIdx.x] = __shfl_xor_sync(cuda::kAllLanes, threadIdx.x, 5);
    votes[threadIdx.x] = __ballot_sync(cuda::kAllLanes, threadIdx.x % 32 < 3 && threadIdx.x < 32);
  });
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(exchanged[i], i ^ 5U);
    EXPECT_EQ(votes[i], i < 32 ? 7U : 0U);
  }
}

TEST(EmulatedBlock, CopiesArriveWhenTheyAreWaitedFor) {
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  run_block(32, 64, [&] {
    if (threadIdx.x > 0) return;
    auto* to = reinterpret_cast<float*>(shared_memory());
    start_copy(to, from, false);
    end_copy_group();
    start_copy(to + 4, from + 4, true);
    end_copy_group();
    EXPECT_TRUE(std::isnan(to[0]));
    wait_for_copies(1);
    EXPECT_EQ(to[3], 4);
    EXPECT_TRUE(std::isnan(to[4]));
    wait_for_copies(0);
    EXPECT_EQ(to[4], 0);  // zeros in place of the source
  });
}

// 16 x 16 times 16 x 8 by way of the loads that kernels use.
template <typename T>
void expect_product(bool right_is_transposed) {
  const auto a = cpu::numbers<float>(16 * 16, 1), b = cpu::numbers<float>(16 * 16, 2);
  std::vector<float> out(16 * 8, 7);
  run_block(32, 2 * 16 * 16 * sizeof(T), [&] {
    auto* left = reinterpret_cast<T*>(shared_memory());
    T* right = left + 256;
    for (unsigned i = threadIdx.x; i < 256; i += 32) {
      left[i] = cuda::rounded<T>(a[i]);
      right[i] = cuda::rounded<T>(b[i]);
    }
    __syncwarp();
    const unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
    std::uint32_t of_a[4], of_b[4];
    cuda::load_matrices(of_a, left + lane % 16 * 16 + lane / 16 * 8);
    if (right_is_transposed) {  // rows are columns of the product
      cuda::load_matrices(of_b, right + (lane / 16 * 8 + lane % 8) * 16 + lane / 8 % 2 * 8);
    } else {
      cuda::load_matrices_transposed(of_b, right + lane % 16 * 16 + lane / 16 * 8);
    }
    float c[4] = {7, 7, 7, 7};
    cuda::multiply_add<T>(c, of_a, of_b[0], of_b[1]);
    for (unsigned i = 0; i < 4; ++i) out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
  });
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = 7;
      for (std::size_t k = 0; k < 16; ++k) {
        const std::size_t at = right_is_transposed ? column * 16 + k : k * 16 + column;
        sum += static_cast<double>(cuda::to_float(cuda::rounded<T>(a[row * 16 + k]))) *
               cuda::to_float(cuda::rounded<T>(b[at]));
      }
      EXPECT_NEAR(out[row * 8 + column], sum, 1e-5);
    }
  }
}

TEST(EmulatedBlock, MatrixInstructionsMultiply) {
  for (const bool transposed : {false, true}) {
    expect_product<cuda::Bf16>(transposed);
    expect_product<cuda::Fp16>(transposed);
  }
}

}  // namespace
}  // namespace stepcast::emulated
