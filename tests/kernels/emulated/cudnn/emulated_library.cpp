// SPDX-License-Identifier: Apache-2.0
// kernels/cuda/cudnn/cudnn_library.h for the stand-in: its functions are in this program.
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/cudnn_library.h"

namespace stepcast::cuda {

std::optional<std::string> why_no_cudnn() { return std::nullopt; }

const CudnnLibrary& cudnn() {
  static const CudnnLibrary library{cudnnGetVersion,
                                    cudnnGetErrorString,
                                    cudnnGetLastErrorString,
                                    cudnnCreate,
                                    cudnnDestroy,
                                    cudnnSetStream,
                                    cudnnBackendCreateDescriptor,
                                    cudnnBackendDestroyDescriptor,
                                    cudnnBackendSetAttribute,
                                    cudnnBackendGetAttribute,
                                    cudnnBackendFinalize,
                                    cudnnBackendExecute};
  return library;
}

}  // namespace stepcast::cuda
