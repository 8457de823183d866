// SPDX-License-Identifier: Apache-2.0
// A call of CUDA or of one of its libraries that failed: the call and the reason.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

namespace stepcast::cuda {

class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class OutOfDeviceMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

// `code` is a cudaError_t.
void check(int code, const char* call);

// Why this process can run no kernel: no driver, no GPU. Nothing where it can.
std::optional<std::string> why_no_gpu();

}  // namespace stepcast::cuda
