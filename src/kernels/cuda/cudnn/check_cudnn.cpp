// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn/cudnn_library.h"

namespace stepcast::cuda {

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> words{};
  cudnn().get_last_error_string(words.data(), words.size());
  std::string what = fmt::format("{}: {}", call, cudnn().get_error_string(status));
  if (words[0] != '\0') what += fmt::format(" ({})", words.data());
  throw CudaError(what);
}

}  // namespace stepcast::cuda
