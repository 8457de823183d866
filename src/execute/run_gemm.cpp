// SPDX-License-Identifier: Apache-2.0
#include "execute/operation_call.h"

namespace stepcast {
namespace {

// y = x W^T (+ bias); the bias of the down projections is added with the residual.
void forward(const OperationCall& call, const Gemm& gemm) {
  call.kernels().gemm(gemm.m, gemm.n, gemm.k, {call.read(0), gemm.k},
                      {call.weight(0), gemm.k, true}, {call.write(0), gemm.n}, false,
                      call.weight(1));
}

// dx[m, n] = dy[m, k] W[k, n].
void input_gradient(const OperationCall& call, const Gemm& gemm) {
  call.kernels().gemm(gemm.m, gemm.n, gemm.k, {call.read(0), gemm.k}, {call.weight(0), gemm.n},
                      {call.write(0), gemm.n}, false, {});
}

// dW[m, n] = dy[k, m]^T x[k, n], k the tokens: into a tensor of its own, or the gradient itself.
void weight_gradient(const OperationCall& call, const Gemm& gemm) {
  const bool own = !gemm.accumulate && !call.operation.writes.empty();
  const GradientPlace place = own ? GradientPlace{call.write(0), true} : call.gradient(0);
  call.kernels().gemm(gemm.m, gemm.n, gemm.k, {call.read(0), gemm.m, true}, {call.read(1), gemm.n},
                      {place.data, gemm.n}, !place.fresh, {});
}

}  // namespace

void run_gemm(const OperationCall& call, const Gemm& gemm) {
  if (call.operation.parameters.empty()) return run_unfused_attention(call);
  switch (gemm.role) {
    case GemmRole::kForward:
      return forward(call, gemm);
    case GemmRole::kInputGradient:
      return input_gradient(call, gemm);
    case GemmRole::kWeightGradient:
      return weight_gradient(call, gemm);
  }
}

}  // namespace stepcast
