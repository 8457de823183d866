// SPDX-License-Identifier: Apache-2.0
// Takes the place of cudnn/ if this was built without cuDNN's headers.
#include "core/assert.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn/attention.h"

namespace stepcast::cuda {

struct CudnnAttention::Plans {};

std::optional<std::string> why_no_cudnn() {
  return "no cuDNN: this program was built without its headers";
}
std::string cudnn_name() { throw CudaError(*why_no_cudnn()); }

CudnnAttention::CudnnAttention(bool, std::optional<std::int64_t>) {}
CudnnAttention::~CudnnAttention() = default;
std::optional<std::string> CudnnAttention::why_not(const AttentionProblem&) {
  return why_no_cudnn();
}
std::int64_t CudnnAttention::workspace_bytes() const { return 0; }
int CudnnAttention::plans_made_again() const { return 0; }

template <typename T>
void CudnnAttention::run(const AttentionShape&, const ForwardArrays<T>&, Stream) {
  STEPCAST_ASSERT(false, "there is a reason against every shape");
}
template <typename T>
void CudnnAttention::run(const AttentionShape&, const BackwardArrays<T>&, Stream) {
  STEPCAST_ASSERT(false, "there is a reason against every shape");
}

#define STEPCAST_INSTANTIATE(T)                                                              \
  template void CudnnAttention::run(const AttentionShape&, const ForwardArrays<T>&, Stream); \
  template void CudnnAttention::run(const AttentionShape&, const BackwardArrays<T>&, Stream);
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
