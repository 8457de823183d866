// SPDX-License-Identifier: Apache-2.0
#include "model/model_check.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "model/model.h"

namespace stepcast {

namespace {

bool has_shape(const Model& model) {
  return model.layers > 0 && model.hidden > 0 && model.heads > 0 && model.kv_heads > 0 &&
         model.vocab > 0;
}

void check_heads(Model& model, const ModelKeys& keys, ObjectReader& reader) {
  if (model.mla) {
    model.head_dim = model.mla->qk_nope_head_dim + model.mla->qk_rope_head_dim;
    return;  // every head has its own keys and values, made from the shared latent
  }
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      reader.fail(
          keys.heads, ErrorCode::kIllegal,
          fmt::format("{} heads do not divide {} {}", model.heads, keys.hidden, model.hidden),
          fmt::format("state {} when heads are not {} / {} wide", keys.head_dim, keys.hidden,
                      keys.heads));
      return;
    }
    model.head_dim = model.hidden / model.heads;
  }
  if (model.heads % model.kv_heads != 0) {
    reader.fail(
        keys.kv_heads, ErrorCode::kIllegal,
        fmt::format("{} key-value heads do not divide {} heads", model.kv_heads, model.heads),
        fmt::format("a divisor of {}", model.heads));
  }
}

void check_experts(const Model& model, const ModelKeys& keys, ObjectReader& moe) {
  const Moe& m = *model.moe;
  if (m.experts == 0) return;  // missing, and reported
  if (m.top_k > m.experts) {
    moe.fail(keys.top_k, ErrorCode::kIllegal,
             fmt::format("a token cannot visit {} of {} experts", m.top_k, m.experts),
             fmt::format("at most {} = {}", keys.experts, m.experts));
  }
  if (m.dense_layers > model.layers) {
    moe.fail(keys.dense_layers, ErrorCode::kIllegal,
             fmt::format("{} dense layers in a model of {}", m.dense_layers, model.layers),
             fmt::format("at most {} = {}", keys.layers, model.layers));
  }
  if (m.layer_every > model.layers) {
    moe.fail(keys.layer_every, ErrorCode::kIllegal,
             fmt::format("no layer would have experts: one in {} of {} layers", m.layer_every,
                         model.layers),
             fmt::format("at most {} = {}", keys.layers, model.layers));
  }
}

double real(std::int64_t count) { return static_cast<double>(count); }

// An upper estimate in floating point: the exact count of an absurd model would overflow.
double rough_parameters(const Model& model) {
  const double hidden = real(model.hidden);
  const double heads = real(model.heads + model.kv_heads);
  double layer = 2 * hidden * heads * real(model.head_dim) + 3 * hidden * real(model.ffn);
  if (model.moe) {
    const Moe& moe = *model.moe;
    layer += 3 * hidden * (real(moe.experts) * real(moe.ffn + 1) + real(moe.shared_ffn));
  }
  if (model.mla) {
    const Mla& mla = *model.mla;
    const double ranks = real(mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_head_dim);
    layer += (hidden + heads * real(model.head_dim + mla.v_head_dim)) * ranks +
             hidden * heads * real(mla.v_head_dim);
  }
  const double tables = 2 * hidden * real(model.vocab + model.max_positions);
  return real(model.layers + model.mtp_layers) * layer +
         2 * real(model.mtp_layers) * hidden * hidden + tables;
}

}  // namespace

void complete_and_check(Model& model, const ModelKeys& keys, ObjectReader& reader,
                        ObjectReader& moe) {
  if (!has_shape(model)) return;
  check_heads(model, keys, reader);
  if (model.moe) check_experts(model, keys, moe);
  if (rough_parameters(model) > kMaxParameters) {
    reader.fail(keys.layers, ErrorCode::kBadValue,
                fmt::format("these shapes make about {:.1e} parameters", rough_parameters(model)),
                fmt::format("at most {:.0e} are accepted: check each size", kMaxParameters));
  }
}

}  // namespace stepcast
