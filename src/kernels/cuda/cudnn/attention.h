// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN 9, whose library is looked for when it is first needed. The sources are built
// where its headers are; elsewhere there is a reason in its place (no_cudnn.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// Why cuDNN cannot be called here: no library, an old one. Nothing where it can.
std::optional<std::string> why_no_cudnn();
std::string cudnn_name();  // "cuDNN 9.19.0"; throws CudaError where there is none

// One workspace: calls of one object go to one stream at a time.
class CudnnAttention {
 public:
  // With `same_bits` every run gives the same bits, for which the backward pass takes 2 bytes of
  // workspace for each score. Otherwise gradients of queries are summed by atomics. A shape that
  // needs more than `most_workspace` bytes of workspace is refused; where that is nothing, more
  // than the device has free when the shape is new, less a part for what comes later.
  CudnnAttention(bool same_bits, std::optional<std::int64_t> most_workspace);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  // Why cuDNN does not compute it; nothing where it does. Plans a shape that is new, which takes a
  // second. bf16 and fp16.
  std::optional<std::string> why_not(const AttentionProblem& problem);

  // Call only for shapes for which why_not() has no reason. T is Bf16 or Fp16.
  template <typename T>
  void run(const AttentionShape& shape, const ForwardArrays<T>& arrays, Stream stream);
  template <typename T>
  void run(const AttentionShape& shape, const BackwardArrays<T>& arrays, Stream stream);

  std::int64_t workspace_bytes() const;
  // Plans are made from the device's properties. One that cannot be executed is made again with a
  // handle.
  int plans_made_again() const;

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace stepcast::cuda
