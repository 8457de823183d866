// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_call.h"

#include <fmt/format.h>

#include "operation/signature.h"

namespace stepcast {

std::string key_of(const Operation& operation, const Scenario& scenario) {
  std::string out = signature(operation);
  const auto* kernel = std::get_if<Elementwise>(&operation.work);
  if (kernel == nullptr) return out;
  const Model& model = scenario.model;
  out += fmt::format(" of {}-byte elements", size_of(scenario.training.precision));
  if (kernel->kind == ElementwiseKind::kNorm) {
    out += model.norm == Norm::kLayerNorm ? ", LayerNorm" : ", RMSNorm";
  } else if (kernel->kind == ElementwiseKind::kActivation) {
    out += model.mlp == Mlp::kSwiglu ? ", SwiGLU" : ", GELU";
  } else if (kernel->kind == ElementwiseKind::kRotary) {
    out += fmt::format(", heads of {}", model.head_dim);
  } else if (kernel->kind == ElementwiseKind::kEmbedding) {
    out += fmt::format(", {} tokens", model.vocab);
  }
  return out;
}

}  // namespace stepcast
