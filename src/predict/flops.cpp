// SPDX-License-Identifier: Apache-2.0
// FLOPs of a step by the definitions of docs/terminology.md, "Work".
#include "predict/prediction.h"
#include "program/program.h"

namespace stepcast {
namespace {

// Forward, per token, of one layer's GEMMs: two per weight that the token meets.
double layer_gemm_flops(const Model& model) {
  const double h = static_cast<double>(model.hidden);
  const double query = static_cast<double>(model.heads * model.head_dim);
  const double key = static_cast<double>(model.kv_heads * model.head_dim);
  const double matrices = model.mlp == Mlp::kSwiglu ? 3 : 2;
  return 2 * (h * (query + 2 * key) + query * h + matrices * h * static_cast<double>(model.ffn));
}

double attention_flops(const Model& model, double keys) {
  return 4 * keys * static_cast<double>(model.heads * model.head_dim);
}

double recomputed_in(const BlockPass& pass, bool causal_half) {
  double sum = 0;
  for (const Operation& operation : pass.operations) {
    if (operation.phase != Phase::kRecompute) continue;
    // Kernels compute the causal half of what the full count has. Where ranks share a sequence they
    // do so in parts, of which some are whole blocks under the diagonal.
    const bool doubles = std::holds_alternative<Attention>(operation.work) && !causal_half;
    const double factor = doubles ? 2 : 1;
    sum += flops_of(operation).value() * factor;
  }
  return sum;
}

}  // namespace

Flops model_flops(const Scenario& scenario, bool causal_half, bool logits) {
  const Model& model = scenario.model;
  const double tokens = static_cast<double>(scenario.training.global_batch) *
                        static_cast<double>(scenario.training.sequence_length);
  // Weights that are not trained take part in the gradient of their input alone.
  const double passes = scenario.training.trains_adapters() ? 2 : 3;
  double flops = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    double keys = static_cast<double>(scenario.training.sequence_length);
    const auto window = static_cast<double>(model.attention_window);
    if (model.is_windowed(layer) && window < keys) {
      keys = window;
    } else if (causal_half) {
      keys /= 2;
    }
    flops += passes * layer_gemm_flops(model) + 3 * attention_flops(model, keys);
  }
  if (logits) {
    flops += passes * 2 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab);
  }
  if (scenario.training.trains_adapters()) {
    flops += 3 * 2 * static_cast<double>(scenario.adapter_elements());
  }
  return Flops(flops * tokens);
}

const char* name_of(FlopCount count) { return count == FlopCount::kFull ? "full" : "causal"; }

Flops hardware_flops(const Scenario& scenario) { return hardware_flops(scenario, lower(scenario)); }

Flops hardware_flops(const Scenario& scenario, const Program& program, bool causal_half) {
  double recomputed = 0;
  for (const Role& role : program.roles) {
    for (const Chunk& chunk : role.chunks) {
      for (const BlockId id : chunk.blocks) {
        for (const BlockPass& pass : program.block(id).passes) {
          recomputed += recomputed_in(pass, causal_half);
        }
      }
    }
  }
  const double per_step =
      static_cast<double>(scenario.micro_batches()) *
      static_cast<double>(scenario.layout.dp * scenario.layout.cp * scenario.layout.tp);
  return model_flops(scenario, causal_half) + Flops(recomputed * per_step);
}

}  // namespace stepcast
