// SPDX-License-Identifier: Apache-2.0
// A product of matrices with a weight of the model: what a GEMM kernel needs and a cost prices.
#pragma once

#include <cstdint>

#include "core/data_type.h"

namespace stepcast {

struct Rows;  // core/rows.h

enum class GemmRole { kForward, kInputGradient, kWeightGradient };
const char* name_of(GemmRole role);

// C[m,n] = A[m,k] B[k,n], `batch` times. Forward: m tokens, n outputs, k inputs. Input gradient:
// m tokens, n inputs, k outputs. Weight gradient: m outputs, n inputs, k tokens. A program's own
// products have batch 1; those of unfused attention are AttentionProducts.
struct Gemm {
  GemmRole role;
  std::int64_t batch;
  std::int64_t m, n, k;
  DataType input;
  DataType output;
  bool accumulate;    // C += A B
  bool bias = false;  // the kernel adds one, by columns

  static constexpr const char* kFamily = "gemm";
  static Rows fields();
};

double flops_of(const Gemm& gemm);

}  // namespace stepcast
