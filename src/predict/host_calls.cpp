// SPDX-License-Identifier: Apache-2.0
#include "predict/host_calls.h"

#include "layout/fp8_recipe.h"
#include "layout/framework_rules.h"
#include "layout/scenario.h"
#include "operation/collective.h"
#include "operation/expert_parts.h"
#include "operation/gradient_work.h"
#include "operation/operation.h"

namespace stepcast {
namespace {

bool scales_blocks(const Scenario& scenario) {
  const Fp8 fp8 = fp8_of(scenario);
  return fp8 && fp8.recipe->scales_by_direction;
}

}  // namespace

HostCalls calls_beside(const Operation& operation, const Scenario& scenario) {
  const ExpertHost& host = scenario.rules.expert_host;
  HostCalls out;
  if (std::holds_alternative<RouterScores>(operation.work)) {
    out.operators = host.routing_operators;
  } else if (std::holds_alternative<TokenPermutation>(operation.work)) {
    out.operators = host.moving_operators;
  } else if (std::holds_alternative<HostRead>(operation.work)) {
    out.operators = host.counting_operators;
  } else if (const auto* moved = std::get_if<Collective>(&operation.work)) {
    const bool rows = moved->purpose == CollectivePurpose::kDispatch ||
                      moved->purpose == CollectivePurpose::kCombine;
    if (rows && scenario.layout.overlap.ep) out.operators = host.pairing_operators;
  } else if (const auto* product = std::get_if<GroupedGemm>(&operation.work)) {
    const bool fp8 = is_scaled(product->input);
    std::int64_t calls = host.product_calls;
    if (fp8 && scales_blocks(scenario)) calls += host.block_scale_calls;
    if (fp8 && product->role == GemmRole::kForward) calls += host.weight_copy_calls;
    out.calls = product->experts * calls;
    if (product->role == GemmRole::kWeightGradient) {
      out.operators = product->experts * host.weight_operators;
    }
  } else if (const auto* dense = std::get_if<Gemm>(&operation.work)) {
    const bool scales = is_scaled(dense->input) && dense->role == GemmRole::kForward;
    if (scales) out.operators = host.scaled_operators;
  } else if (std::holds_alternative<ExpertBias>(operation.work)) {
    if (operation.groups > 1) out.operators = operation.groups * host.bias_operators;
  } else if (const auto* cast = std::get_if<Cast>(&operation.work)) {
    if (operation.groups > 1) {
      const bool scale =
          cast->subject == CastSubject::kScale || cast->subject == CastSubject::kTransformedScale;
      out.calls = operation.groups * (scale ? host.scale_calls : host.cast_calls);
    }
  }
  return out;
}

}  // namespace stepcast
