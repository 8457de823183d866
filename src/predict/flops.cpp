// SPDX-License-Identifier: Apache-2.0
// FLOPs of a step by the definitions of docs/terminology.md, "Work".
#include <algorithm>

#include "layout/packed_documents.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "program/walk.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// The weights of a layer's attention that a token meets.
double attention_weights(const Model& model) {
  const double h = static_cast<double>(model.hidden);
  if (!model.mla) {
    const double query = static_cast<double>(model.heads * model.head_dim);
    const double key = static_cast<double>(model.kv_heads * model.head_dim);
    return h * (query + 2 * key) + query * h;
  }
  const Mla& mla = *model.mla;
  const double heads = static_cast<double>(model.heads);
  const double query = heads * static_cast<double>(mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  const double query_latent = static_cast<double>(mla.q_lora_rank);
  const double latent = static_cast<double>(mla.kv_lora_rank);
  const double value = static_cast<double>(mla.v_head_dim);
  const double of_queries = mla.q_lora_rank > 0 ? query_latent * (h + query) : h * query;
  return of_queries + h * (latent + static_cast<double>(mla.qk_rope_head_dim)) +
         latent * heads * (static_cast<double>(mla.qk_nope_head_dim) + value) + heads * value * h;
}

// Counts the weights of a layer's MLP, or of the router and the experts that the token visits.
double mlp_weights(const Model& model, std::int64_t layer) {
  const double h = static_cast<double>(model.hidden);
  const double matrices = model.mlp == Mlp::kSwiglu ? 3 : 2;
  if (!model.is_moe_layer(layer)) return matrices * h * static_cast<double>(model.ffn);
  const Moe& moe = *model.moe;
  const auto visited = static_cast<double>(moe.top_k * moe.ffn + moe.shared_ffn);
  return matrices * h * visited + h * static_cast<double>(moe.experts) + (moe.shared_gate ? h : 0);
}

// Forward, per token, of one layer's GEMMs: two per weight that the token meets.
double layer_gemm_flops(const Model& model, std::int64_t layer) {
  return 2 * (attention_weights(model) + mlp_weights(model, layer));
}

double attention_flops(const Model& model, double keys) {
  if (!model.mla) return 4 * keys * static_cast<double>(model.heads * model.head_dim);
  return 2 * keys * static_cast<double>(model.heads * (model.head_dim + model.mla->v_head_dim));
}

// Three passes of attention over one token of a layer.
double layer_attention_flops(const Scenario& scenario, std::int64_t layer, bool causal_half) {
  const Model& model = scenario.model;
  double keys = static_cast<double>(scenario.training.sequence_length);
  const auto window = static_cast<double>(model.attention_window);
  if (packs_documents(scenario)) keys = std::min(keys, document_span(scenario));
  if (model.is_windowed(layer) && window < keys) {
    keys = window;
  } else if (causal_half) {
    keys /= 2;
  }
  return 3 * attention_flops(model, keys);
}

double tokens_of_step(const Scenario& scenario) {
  return static_cast<double>(scenario.training.global_batch) *
         static_cast<double>(scenario.training.sequence_length);
}

// A query sees less than its document, or its row, has before it.
bool is_cut(const Scenario& scenario, const Attention& attention) {
  if (!packs_documents(scenario)) return attention.window || attention.chunk;
  const double span = document_span(scenario) - 1;
  const auto below = [&](const OptionalCount& limit) {
    return limit && static_cast<double>(limit.value) < span;
  };
  // A ring meets a part of each document in each step.
  return below(attention.window) || (!attention.ring_step && below(attention.chunk));
}

double recomputed_in(const Scenario& scenario, const Block& block, bool causal_half) {
  double sum = 0;
  for_each_operation(block, [&](const Operation& operation) {
    if (operation.phase != Phase::kRecompute) return;
    // Kernels compute the causal half of what the full count has. Where ranks share a sequence they
    // do so in parts, of which some are whole blocks under the diagonal.
    const auto* attention = std::get_if<Attention>(&operation.work);
    const bool is_half = attention != nullptr && !is_cut(scenario, *attention);
    const bool doubles = is_half && !causal_half;
    const double factor = doubles ? 2 : 1;
    sum += flops_of(operation).value() * factor;
  });
  return sum;
}

}  // namespace

// A prediction module runs a layer like the last.
Flops model_attention_flops(const Scenario& scenario, bool causal_half) {
  const Model& model = scenario.model;
  double flops = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    flops += layer_attention_flops(scenario, layer, causal_half);
  }
  if (model.mtp_layers > 0) {
    flops += static_cast<double>(model.mtp_layers) *
             layer_attention_flops(scenario, model.layers - 1, causal_half);
  }
  return Flops(flops * tokens_of_step(scenario));
}

Flops model_flops(const Scenario& scenario, bool causal_half, bool logits) {
  const Model& model = scenario.model;
  // Weights that are not trained take part in the gradient of their input alone.
  const double passes = scenario.training.trains_adapters() ? 2 : 3;
  double flops = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    flops += passes * layer_gemm_flops(model, layer);
  }
  const double h = static_cast<double>(model.hidden);
  const double heads = static_cast<double>(1 + model.mtp_layers);
  const double width = static_cast<double>(model.table_width());
  if (logits) flops += passes * 2 * width * static_cast<double>(model.vocab) * heads;
  if (width != h) flops += passes * 2 * (2 * width * h);  // into the blocks and out again
  // A prediction module joins two states by one product.
  if (model.mtp_layers > 0) {
    flops += static_cast<double>(model.mtp_layers) * passes *
             (4 * h * h + layer_gemm_flops(model, model.layers - 1));
  }
  if (scenario.training.trains_adapters()) {
    flops += 3 * 2 * static_cast<double>(scenario.active_adapter_elements());
  }
  return Flops(flops * tokens_of_step(scenario)) + model_attention_flops(scenario, causal_half);
}

const char* name_of(FlopCount count) { return count == FlopCount::kFull ? "full" : "causal"; }

Flops hardware_flops(const Scenario& scenario) { return hardware_flops(scenario, lower(scenario)); }

Flops hardware_flops(const Scenario& scenario, const Program& program, bool causal_half) {
  double recomputed = 0;
  for (const Role& role : program.roles) {
    for_each_block(program, role, [&](const Block& block) {
      recomputed += recomputed_in(scenario, block, causal_half);
    });
  }
  // Each of two copies of the model has half the micro-batches.
  const double copies = feeds_both_ends(scenario.layout) ? 2 : 1;
  const double per_step =
      static_cast<double>(scenario.micro_batches()) / copies *
      static_cast<double>(scenario.layout.dp * scenario.layout.cp * scenario.layout.tp);
  return model_flops(scenario, causal_half) + Flops(recomputed * per_step);
}

}  // namespace stepcast
