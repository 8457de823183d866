// SPDX-License-Identifier: Apache-2.0
// Rows of tokens in another order, as on the CPU (kernels/cpu/experts.h). T is float, Bf16 or Fp16;
// sums are in fp32 and always in one order.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

template <typename T>
void take_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
               std::int64_t width, Stream stream);
// Takes rows that are wanted several times, and reads each of the `sources` once. `workspace`:
// sources + rows numbers.
template <typename T>
void spread_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
                 std::int64_t sources, std::int64_t width, std::int32_t* workspace, Stream stream);
template <typename T>
void put_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t width, Stream stream);

// `workspace`: targets + rows numbers.
template <typename T>
void add_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t targets, std::int64_t width, std::int32_t* workspace, Stream stream);

// The first `columns` of rows that may be parts of longer ones.
template <typename T>
void copy_columns(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                  std::int64_t rows, std::int64_t columns, Stream stream);

}  // namespace stepcast::cuda
