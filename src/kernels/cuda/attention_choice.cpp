// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_choice.h"

#include <fmt/format.h>

#include "core/assert.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/stream_timer.h"

namespace stepcast::cuda {
namespace {

constexpr int kCalls = 2;  // timed together

}  // namespace

AttentionSettings attention_settings(const std::string& name) {
  AttentionSettings out;
  if (name == "own") {
    out.fixed = AttentionKernel::kOwn;
  } else if (name == "cudnn") {
    out.fixed = AttentionKernel::kCudnn;
  } else if (name == "atomics") {
    out.same_bits = false;
  } else {
    STEPCAST_ASSERT(name == "fastest", "jobs allow four names");
  }
  return out;
}

AttentionKernels::AttentionKernels(const AttentionSettings& settings)
    : settings_(settings), cudnn_(settings.same_bits, settings.most_workspace) {}

void AttentionKernels::make_key_sums(std::size_t bytes) {
  key_sums_.reset();  // waits for what still uses it
  key_sums_bytes_ = bytes;
  if (bytes > 0) key_sums_.emplace(bytes);
}

template <typename T>
void AttentionKernels::run_own(const AttentionShape& shape, const ForwardArrays<T>& a,
                               Stream stream) {
  attention<T>(shape, a.query, a.key, a.value, a.context, a.log_sum_exp, stream);
}
template <typename T>
void AttentionKernels::run_own(const AttentionShape& shape, const BackwardArrays<T>& a,
                               Stream stream) {
  const auto bytes = static_cast<std::size_t>(attention_key_sums<T>(shape)) * sizeof(float);
  if (bytes > key_sums_bytes_) make_key_sums(bytes);
  attention_backward<T>(shape, a.query, a.key, a.value, a.context, a.log_sum_exp,
                        a.context_gradient, a.query_gradient, a.key_gradient, a.value_gradient,
                        a.row_products,
                        bytes > 0 ? static_cast<float*>(key_sums_->data()) : nullptr, stream);
}

template <typename T, typename Arrays>
AttentionKernels::Choice AttentionKernels::choose(const AttentionShape& shape, const Arrays& arrays,
                                                  Stream stream) {
  if (settings_.fixed == AttentionKernel::kOwn) return {AttentionKernel::kOwn, "as told"};
  if (const auto why = cudnn_.why_not(problem_of(shape, arrays))) {
    return {AttentionKernel::kOwn, *why, !std::is_same_v<T, float>};
  }
  if constexpr (std::is_same_v<T, float>) {
    return {AttentionKernel::kOwn, ""};  // there was a reason
  } else {
    if (settings_.fixed) return {AttentionKernel::kCudnn, "as told"};
    const float own = median_time(stream, kCalls, [&] { run_own(shape, arrays, stream); });
    try {
      const float other = median_time(stream, kCalls, [&] { cudnn_.run(shape, arrays, stream); });
      if (other < own) {
        make_key_sums(0);  // the timing's
        return {AttentionKernel::kCudnn, "faster"};
      }
      return {AttentionKernel::kOwn, "faster"};
    } catch (const CudaError& error) {
      // Not "faster": nobody knows. If the device is broken, the own kernel says so next.
      return {AttentionKernel::kOwn, fmt::format("{} fails: {}", cudnn_name(), error.what()), true};
    }
  }
}

template <typename T, typename Arrays>
void AttentionKernels::run(const AttentionShape& shape, const Arrays& arrays, Stream stream) {
  if (shape.is_empty()) return;
  const AttentionProblem::Key key = problem_of(shape, arrays).sort_key();
  auto found = choices_.find(key);
  if (found == choices_.end()) {
    found = choices_.emplace(key, choose<T>(shape, arrays, stream)).first;
  }
  served_last_ = found->second.kernel;
  if constexpr (!std::is_same_v<T, float>) {
    if (found->second.kernel == AttentionKernel::kCudnn) return cudnn_.run(shape, arrays, stream);
  }
  run_own(shape, arrays, stream);
}

template <typename T>
void AttentionKernels::forward(const AttentionShape& shape, const ForwardArrays<T>& arrays,
                               Stream stream) {
  run<T>(shape, arrays, stream);
}
template <typename T>
void AttentionKernels::backward(const AttentionShape& shape, const BackwardArrays<T>& arrays,
                                Stream stream) {
  run<T>(shape, arrays, stream);
}

std::string AttentionKernels::told() const {
  std::map<std::string, int> calls;
  for (const auto& [key, choice] : choices_) {
    const std::string by =
        choice.kernel == AttentionKernel::kCudnn ? cudnn_name() : std::string("own kernels");
    ++calls[fmt::format("{} ({})", by, choice.reason)];
  }
  std::string out;
  for (const auto& [by, count] : calls) {
    out += fmt::format("{}{} by {}", out.empty() ? "" : ", ", count, by);
  }
  if (const int again = cudnn_.plans_made_again(); again > 0) {
    out += fmt::format("; {} plans of cuDNN were made again with a handle", again);
  }
  return out.empty() ? "none" : out;
}

std::set<std::string> AttentionKernels::worries() const {
  std::set<std::string> out;
  for (const auto& [key, choice] : choices_) {
    if (choice.is_worry) out.insert("attention is by the own kernels: " + choice.reason);
  }
  return out;
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void AttentionKernels::forward(const AttentionShape&, const ForwardArrays<T>&, Stream); \
  template void AttentionKernels::backward(const AttentionShape&, const BackwardArrays<T>&, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
