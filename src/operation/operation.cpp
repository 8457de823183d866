// SPDX-License-Identifier: Apache-2.0
#include "operation/operation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast {
namespace {

template <class Work>
concept MemoryBoundWork = requires {
  Work::kKind;
};

template <std::size_t N, class Enum>
const char* named(const std::array<const char*, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

}  // namespace

const char* name_of(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames{"forward", "recompute", "backward",
                                                           "weight_gradient", "optimizer"};
  return named(kNames, phase);
}

const char* name_of(MemoryCategory category) {
  static constexpr std::array<const char*, kMemoryCategories> kNames{
      "parameters", "gradients", "optimizer", "activations", "buffers", "workspace", "outer"};
  return named(kNames, category);
}

const char* name_of(CollectiveKind kind) {
  static constexpr std::array<const char*, kCollectiveKinds> kNames{
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"};
  return named(kNames, kind);
}

const char* name_of(CollectivePurpose purpose) {
  static constexpr std::array<const char*, 10> kNames{
      "activations", "loss_maximum", "loss_target", "loss_sum", "scale",
      "dispatch",    "combine",      "routing",     "keys",     "values"};
  return named(kNames, purpose);
}

const char* name_of(ContextTensor tensor) {
  static constexpr std::array<const char*, 5> kNames{"query", "key", "value", "context",
                                                     "key_value"};
  return named(kNames, tensor);
}

const char* name_of(ContextMove move) {
  static constexpr std::array<const char*, 6> kNames{"pack",        "narrow",       "split_heads",
                                                     "join_tokens", "split_tokens", "join_heads"};
  return named(kNames, move);
}

const char* name_of(GemmRole role) {
  static constexpr std::array<const char*, 3> kNames{"forward", "input_gradient",
                                                     "weight_gradient"};
  return named(kNames, role);
}

const char* name_of(AttentionProductKind kind) {
  static constexpr std::array<const char*, 6> kNames{
      "scores",         "context",        "probabilities_gradient",
      "value_gradient", "query_gradient", "key_gradient"};
  return named(kNames, kind);
}

const char* name_of(MemoryBoundKind kind) {
  static constexpr std::array<const char*, kMemoryBoundKinds> kNames{
      "embedding",     "norm",      "activation", "dropout_add", "softmax", "rotary",   "transpose",
      "cross_entropy", "reduction", "cast",       "accumulate",  "fill",    "optimizer"};
  return named(kNames, kind);
}

const char* name_of(Norm norm) { return norm == Norm::kLayerNorm ? "layer_norm" : "rms_norm"; }
const char* name_of(Mlp mlp) { return mlp == Mlp::kGelu ? "gelu" : "swiglu"; }

const char* name_of(TokenMove move) {
  static constexpr std::array<const char*, 3> kNames{"permute", "unpermute", "sort"};
  return named(kNames, move);
}

const char* name_of(CastSubject subject) {
  static constexpr std::array<const char*, 9> kNames{
      "logits",  "gradients", "parameters", "four_bit_weight", "scale", "transformed_scale",
      "operand", "weight",    "stored"};
  return named(kNames, subject);
}

double flops_of(const Gemm& gemm) {
  return 2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

namespace {

// Queries times the keys that they see: half of all behind a causal mask, of windows what they
// hold.
double pairs_of(const Attention& attention) {
  const double queries = static_cast<double>(attention.query_length);
  const double keys = static_cast<double>(attention.key_length);
  const double chunk = static_cast<double>(attention.chunk.value);
  const double window = static_cast<double>(attention.window.value);
  const double seen = attention.causal ? 0.5 : 1.0;
  double out = queries * keys * seen;
  if (attention.chunk && chunk < keys) out = queries * chunk * seen;
  if (attention.window && window < keys) out = std::min(out, window * (queries - window * 0.5));
  return out;
}

}  // namespace

// Forward two products, of queries with keys and of weights with values; backward the first again,
// two of the values' size and two of the keys'.
double flops_of(const Attention& attention) {
  if (!attention.value_dim && !attention.window && !attention.chunk) {
    return 4.0 * static_cast<double>(attention.batch * attention.heads) *
           static_cast<double>(attention.query_length) * static_cast<double>(attention.key_length) *
           static_cast<double>(attention.head_dim) * (attention.causal ? 0.5 : 1.0) *
           (attention.backward ? 2.5 : 1.0);
  }
  const double heads = static_cast<double>(attention.batch * attention.heads);
  const double pairs = pairs_of(attention);
  const double key = static_cast<double>(attention.head_dim);
  const double value =
      static_cast<double>(attention.value_dim ? attention.value_dim.value : attention.head_dim);
  return 2.0 * heads * pairs * (attention.backward ? 3 * key + 2 * value : key + value);
}

double flops_of(const GroupedGemm& grouped) {
  return 2.0 * static_cast<double>(grouped.rows) * static_cast<double>(grouped.outputs) *
         static_cast<double>(grouped.inputs);
}

Gemm mean_gemm_of(const GroupedGemm& grouped) {
  const std::int64_t rows = std::max<std::int64_t>(
      1, (grouped.rows + grouped.experts - 1) / std::max<std::int64_t>(1, grouped.experts));
  Gemm out{grouped.role,    grouped.experts,    rows,
           grouped.outputs, grouped.inputs,     grouped.input,
           grouped.output,  grouped.accumulate, grouped.bias};
  if (grouped.role == GemmRole::kInputGradient) std::swap(out.n, out.k);
  if (grouped.role == GemmRole::kWeightGradient) {
    out.m = grouped.outputs;
    out.n = grouped.inputs;
    out.k = rows;
  }
  return out;
}

Gemm gemm_of(const AttentionProduct& product) {
  const AttentionSizes& sizes = product.sizes;
  const bool of_values = product.kind == AttentionProductKind::kContext ||
                         product.kind == AttentionProductKind::kProbabilitiesGradient ||
                         product.kind == AttentionProductKind::kValueGradient;
  const std::int64_t s = sizes.sequence, d = of_values ? sizes.value_width() : sizes.head_dim;
  const bool by_keys = product.kind == AttentionProductKind::kScores ||
                       product.kind == AttentionProductKind::kProbabilitiesGradient;
  const bool forward = product.kind == AttentionProductKind::kScores ||
                       product.kind == AttentionProductKind::kContext;
  return {forward ? GemmRole::kForward : GemmRole::kInputGradient,
          sizes.batch * sizes.heads,
          s,
          by_keys ? s : d,
          by_keys ? d : s,
          product.type,
          product.type == DataType::kTf32 ? DataType::kFp32 : product.type,
          false};
}

std::optional<Gemm> product_of(const Operation::Work& work) {
  if (const auto* gemm = std::get_if<Gemm>(&work)) return *gemm;
  if (const auto* part = std::get_if<AttentionProduct>(&work)) return gemm_of(*part);
  return std::nullopt;
}

std::optional<MemoryBound> memory_bound(const Operation::Work& work) {
  return std::visit(
      [](const auto& own) -> std::optional<MemoryBound> {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (MemoryBoundWork<Own>) {
          return MemoryBound{
              Own::kKind,     own.backward,      own.size.elements,      own.size.width,
              own.size.bytes, own.size.launches, own.size.bytes_in_steps};
        } else {
          return std::nullopt;
        }
      },
      work);
}

KernelSize* size_of_kernel(Operation::Work& work) {
  return std::visit(
      [](auto& own) -> KernelSize* {
        if constexpr (MemoryBoundWork<std::decay_t<decltype(own)>>) {
          return &own.size;
        } else {
          return nullptr;
        }
      },
      work);
}

bool runs_kernel(const Operation::Work& work) {
  if (std::holds_alternative<Collective>(work) || std::holds_alternative<Alias>(work) ||
      std::holds_alternative<UnitCopy>(work) || std::holds_alternative<HostRead>(work)) {
    return false;
  }
  const auto kernel = memory_bound(work);
  return !kernel || kernel->elements > 0;
}

Flops flops_of(const Operation& operation) {
  if (const auto gemm = product_of(operation.work)) return Flops(flops_of(*gemm));
  if (const auto* grouped = std::get_if<GroupedGemm>(&operation.work)) {
    return Flops(flops_of(*grouped));
  }
  const auto* attention = std::get_if<Attention>(&operation.work);
  return Flops(attention != nullptr ? flops_of(*attention) : 0);
}

}  // namespace stepcast
