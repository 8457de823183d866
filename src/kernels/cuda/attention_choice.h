// SPDX-License-Identifier: Apache-2.0
// Attention by the faster of two: our own kernels (attention.h) or cuDNN's. Where both can run a
// shape, the first call times both on the call's own arrays, which both fill with the same values.
// That call waits for the stream.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/device_memory.h"

namespace stepcast::cuda {

enum class AttentionKernel { kOwn, kCudnn };

struct AttentionSettings {
  std::optional<AttentionKernel> fixed;  // nothing: the faster; what cuDNN cannot run is our own
  bool same_bits = true;                 // see CudnnAttention
  std::optional<std::int64_t> most_workspace = {};  // nothing: what the device has free
};

// Reads a name: "fastest", "atomics" (the fastest, with cuDNN's backward pass by atomics), "own" or
// "cudnn".
AttentionSettings attention_settings(const std::string& name);

// Calls of one object go to one stream at a time.
class AttentionKernels {
 public:
  explicit AttentionKernels(const AttentionSettings& settings = {});

  // T is float, Bf16 or Fp16.
  template <typename T>
  void forward(const AttentionShape& shape, const ForwardArrays<T>& arrays, Stream stream);
  template <typename T>
  void backward(const AttentionShape& shape, const BackwardArrays<T>& arrays, Stream stream);

  std::int64_t workspace_bytes() const {
    return cudnn_.workspace_bytes() + static_cast<std::int64_t>(key_sums_bytes_);
  }
  // Which of them has served the last call; nothing before the first.
  std::optional<AttentionKernel> served_last() const { return served_last_; }
  // How many kinds of calls each has served, and why: "3 by cuDNN 9.19.0 (faster), 1 by ...".
  std::string told() const;
  // Why our own kernels, which are slower by a multiple on recent GPUs, serve calls that cuDNN was
  // to serve or to compete for: no library, no memory, an error.
  std::set<std::string> worries() const;

 private:
  struct Choice {
    AttentionKernel kernel;
    std::string reason;
    bool is_worry = false;
  };
  template <typename T, typename Arrays>
  void run(const AttentionShape& shape, const Arrays& arrays, Stream stream);
  template <typename T, typename Arrays>
  Choice choose(const AttentionShape& shape, const Arrays& arrays, Stream stream);
  template <typename T>
  void run_own(const AttentionShape& shape, const ForwardArrays<T>& arrays, Stream stream);
  template <typename T>
  void run_own(const AttentionShape& shape, const BackwardArrays<T>& arrays, Stream stream);
  void make_key_sums(std::size_t bytes);  // room for so many, or none

  AttentionSettings settings_;
  CudnnAttention cudnn_;
  std::map<AttentionProblem::Key, Choice> choices_;
  std::optional<AttentionKernel> served_last_;
  std::optional<DeviceMemory> key_sums_;
  std::size_t key_sums_bytes_ = 0;
};

}  // namespace stepcast::cuda
