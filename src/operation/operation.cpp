// SPDX-License-Identifier: Apache-2.0
#include "operation/operation.h"

namespace stepcast {
namespace {

double count(const Gemm& gemm) {
  return 2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

double count(const Attention& attention) {
  const double full = 4.0 * static_cast<double>(attention.batch * attention.heads) *
                      static_cast<double>(attention.query_length) *
                      static_cast<double>(attention.key_length) *
                      static_cast<double>(attention.head_dim);
  return full * (attention.causal ? 0.5 : 1.0) * (attention.backward ? 2.5 : 1.0);
}

double count(const Elementwise&) { return 0; }
double count(const Collective&) { return 0; }

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "backward";
    case Phase::kWeightGradient:
      return "weight_gradient";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "";
}

const char* name_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizer:
      return "optimizer";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kBuffers:
      return "buffers";
    case MemoryCategory::kWorkspace:
      return "workspace";
  }
  return "";
}

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSendReceive:
      return "send_recv";
  }
  return "";
}

Flops flops_of(const Operation& operation) {
  return Flops(std::visit([](const auto& work) { return count(work); }, operation.work));
}

}  // namespace stepcast
