// SPDX-License-Identifier: Apache-2.0
#include "cost/kernel_cost.h"

#include <algorithm>
#include <cmath>

#include "core/assert.h"
#include "cost/attention_cost.h"
#include "cost/fp8_attention.h"
#include "cost/gemm_cost.h"
#include "cost/memory_bound_cost.h"
#include "operation/expert_parts.h"
#include "operation/gradient_work.h"
#include "operation/operation.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

double octaves(std::int64_t count) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(1, count)));
}

SampleSurface::Point point_of(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                              bool wide_output, bool accumulate) {
  return {octaves(batch),         octaves(m), octaves(n), octaves(k), wide_output ? 1.0 : 0.0,
          accumulate ? 0.25 : 0.0};
}

SampleSurface::Point point_of(const Gemm& gemm) {
  return point_of(gemm.batch, gemm.m, gemm.n, gemm.k, size_of(gemm.output) > 2, gemm.accumulate);
}

// Batch and heads have the same effect on a kernel. Sharing keys among heads matters little.
SampleSurface::Point point_of(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                              std::int64_t sequence, std::int64_t head_dim, bool causal) {
  return {octaves(batch * heads), 0.25 * octaves(heads / std::max<std::int64_t>(1, kv_heads)),
          octaves(sequence),      2 * octaves(head_dim),
          causal ? 4.0 : 0.0,     0.0};
}

// A price bent by samples rests on `hit` at a sample itself, on less beside and outside them.
Provenance provenance_of(const SampleSurface::Correction& correction, Provenance hit) {
  if (correction.distance == 0) return hit;
  const bool own = hit == Provenance::kMeasured;
  return own && correction.inside ? Provenance::kInterpolated : Provenance::kExtrapolated;
}

}  // namespace

KernelCosts::KernelCosts(Accelerator accelerator, Profile profile, KernelStyle style,
                         std::optional<Framework> framework, const std::string& attention_kernel)
    : accelerator_(std::move(accelerator)),
      profile_(std::move(profile)),
      style_(style),
      gemm_surface_(
          surface_of(GemmCurve{profile_.gemm, profile_.gemm_samples, profile_.neighbourhood,
                               profile_.provenance, profile_.gemm_samples_provenance},
                     DataType::kBf16)),
      gemm_fp8_surface_(surface_of(profile_.gemm_fp8, DataType::kFp8)),
      gemm_fp4_surface_(
          surface_of(profile_.gemm_fp4.value_or(GemmCurve{profile_.gemm_fp8.fit,
                                                          {},
                                                          profile_.gemm_fp8.neighbourhood,
                                                          Provenance::kExtrapolated}),
                     DataType::kFp4)),
      gemm_fp32_surface_(
          surface_of(profile_.gemm_fp32.value_or(
                         GemmCurve{profile_.gemm, {}, profile_.neighbourhood, profile_.provenance}),
                     DataType::kFp32)),
      attention_surface_{
          SampleSurface(profile_.neighbourhood.reach, profile_.neighbourhood.shrinkage),
          SampleSurface(profile_.neighbourhood.reach, profile_.neighbourhood.shrinkage)},
      attention_(profile_.attention),
      attention_provenance_(profile_.provenance) {
  const std::string named = framework ? profile_.attention_kernel[*framework] : "";
  const AttentionVariant* variant = profile_.variant(named.empty() ? attention_kernel : named);
  if (variant != nullptr) index_attention_samples(*variant);
}

KernelCosts::GemmSurface KernelCosts::surface_of(const GemmCurve& curve, DataType type) const {
  const SampleSurface empty(curve.neighbourhood.reach, curve.neighbourhood.shrinkage);
  GemmSurface out{curve.fit,
                  {empty, empty, empty},
                  curve.neighbourhood.all_roles,
                  curve.provenance,
                  curve.samples_provenance};
  for (const GemmSample& sample : curve.samples) {
    const Gemm gemm = gemm_of(sample, type);
    const double measured =
        flops_of(gemm) / (matrix_peak(accelerator_, type).value() * sample.efficiency);
    const double form = gemm_form_time(curve.fit, accelerator_, gemm, Pace::kShortRun).value();
    out.by_role[static_cast<std::size_t>(sample.role)].add(point_of(gemm),
                                                           std::log(measured / form));
  }
  return out;
}

const KernelCosts::GemmSurface& KernelCosts::surface_of(DataType type) const {
  if (size_of(type) == 2) return gemm_surface_;
  // A processor expands what has 8 bits, and multiplies fp32.
  if (accelerator_.architecture == GpuArchitecture::kCpu) return gemm_fp32_surface_;
  if (type == DataType::kFp4) return gemm_fp4_surface_;
  return is_scaled(type) ? gemm_fp8_surface_ : gemm_fp32_surface_;
}

void KernelCosts::index_attention_samples(const AttentionVariant& variant) {
  attention_ = variant.fit;
  attention_provenance_ = variant.provenance;
  attention_samples_provenance_ = variant.samples_provenance;
  attention_type_ = variant.type;
  for (const AttentionSample& sample : variant.samples) {
    const Attention attention{sample.backward, sample.batch,    sample.heads,
                              sample.kv_heads, sample.sequence, sample.sequence,
                              sample.head_dim, sample.causal,   variant.type};
    const double measured =
        flops_of(attention) / (matrix_peak(accelerator_, variant.type).value() * sample.efficiency);
    const double form = attention_form_time(attention_, accelerator_, attention,
                                            sample.backward ? Pace::kBackToBack : Pace::kShortRun)
                            .value();
    attention_surface_[sample.backward ? 1 : 0].add(
        point_of(sample.batch, sample.heads, sample.kv_heads, sample.sequence, sample.head_dim,
                 sample.causal),
        std::log(measured / form));
  }
}

bool KernelCosts::runs(const Operation& operation) const {
  if (std::holds_alternative<UnitCopy>(operation.work)) return style_ != KernelStyle::kOwn;
  return runs_kernel(operation.work);
}

KernelPrice KernelCosts::price(const Operation& operation) const {
  KernelPrice out = price_by_kind(operation);
  out.time *= profile_.disturbance;
  if (profile_.exact.empty()) return out;
  const auto hit = profile_.exact.find(signature(operation));
  if (hit == profile_.exact.end()) return out;
  out.time = hit->second.mean;
  out.jitter = hit->second.jitter;
  out.provenance = Provenance::kMeasured;
  out.exact = true;
  return out;
}

namespace {

// Kernels of NVFP4 compute more than they move. On a GB200, whose casts to fp8 move 5.0 TB/s as its
// profile has them, torchao's CuteDSL kernels take another microsecond for each 3.67 MB that the
// pass for the largest elements, transformed and not, reads (2048 x 4096 to 28672: 11.36 to 38.8
// us), and for each 2.91 MB that the cast moves (13.89 to 67.94 us; pytorch/ao pull request 4487).
// Its fast arithmetic, the default since 2026-08, makes the cast 1.3 to 1.4 times as fast; rounding
// gradients at random costs 1.42 times in Triton's kernels, over which those have 2.1 times where
// they have 1.6 without it (pull request 4798).
double fp4_cast_effort(const Cast& cast) {
  constexpr double kPlain = 5.0, kLargest = kPlain / 3.67, kCast = kPlain / (2.91 * 1.35);
  constexpr double kRandomRounding = 1.42 * 1.6 / 2.1;
  if (cast.subject == CastSubject::kTransformedScale) return kLargest;
  if (cast.to != DataType::kFp4 || cast.from == DataType::kFp4) return 1;
  return kCast * (cast.backward && cast.subject == CastSubject::kOperand ? kRandomRounding : 1);
}

}  // namespace

KernelPrice KernelCosts::price_by_kind(const Operation& operation) const {
  if (const auto gemm = product_of(operation.work)) return price(*gemm);
  if (const auto* attention = std::get_if<Attention>(&operation.work)) return price(*attention);
  if (const auto* grouped = std::get_if<GroupedGemm>(&operation.work)) return price(*grouped);
  if (const auto* copy = std::get_if<UnitCopy>(&operation.work)) {
    return price(
        MemoryBound{MemoryBoundKind::kTranspose, copy->backward, copy->elements, 0, copy->bytes});
  }
  const auto kernel = memory_bound(operation.work);
  STEPCAST_ASSERT(kernel.has_value(), "a kernel");
  KernelPrice out = price(*kernel);
  if (const auto* cast = std::get_if<Cast>(&operation.work)) out.time *= fp4_cast_effort(*cast);
  return out;
}

KernelPrice KernelCosts::price(const Gemm& gemm) const {
  const GemmSurface& surface = surface_of(gemm.input);
  KernelPrice out{gemm_form_time(surface.fit, accelerator_, gemm), 1, traffic_of(gemm),
                  Curve::kGemm, surface.form};
  const SampleSurface& own = surface.by_role[static_cast<std::size_t>(gemm.role)];
  const SampleSurface& forward = surface.by_role[static_cast<std::size_t>(GemmRole::kForward)];
  const bool borrowed = own.empty() && surface.all_roles;
  if (own.empty() && (!borrowed || forward.empty())) return out;
  Gemm like = gemm;
  if (borrowed) {
    like.output = DataType::kBf16;
    like.accumulate = false;
  }
  const SampleSurface::Correction correction = (borrowed ? forward : own).at(point_of(like));
  out.time *= std::exp(correction.log_factor);
  out.provenance = provenance_of(correction, surface.samples);
  // A sample of another role, or of a short run, is not the product of a step itself.
  if (borrowed || surface.fit.back_to_back > 0) {
    out.provenance = std::max(out.provenance, Provenance::kInterpolated);
  }
  return out;
}

// The form of as many products of the mean size: tiles and waves count every expert's last, partly
// filled row of tiles.
KernelPrice KernelCosts::price(const GroupedGemm& grouped) const {
  const Gemm mean = mean_gemm_of(grouped);
  const GemmSurface& surface = surface_of(grouped.input);
  return {grouped_form_time(profile_.grouped, surface.fit, accelerator_, mean), 1, traffic_of(mean),
          Curve::kGemm, std::max(profile_.grouped_provenance, surface.form)};
}

KernelPrice KernelCosts::price(const Attention& attention) const {
  if (is_scaled(attention.type)) {
    Attention wide = attention;
    wide.type = DataType::kBf16;
    KernelPrice out = price(wide);
    out.time *= 1 / fp8_attention_speed(accelerator_, attention);
    out.provenance = std::max(out.provenance, Provenance::kExtrapolated);  // no profile has its own
    return out;
  }
  KernelPrice out{attention_form_time(attention_, accelerator_, attention), 1,
                  traffic_of(attention), Curve::kAttention, attention_provenance_};
  const SampleSurface& surface = attention_surface_[attention.backward ? 1 : 0];
  if (size_of(attention.type) != size_of(attention_type_) ||
      attention.query_length != attention.key_length || surface.empty() || attention.window ||
      attention.chunk) {
    return out;
  }
  const SampleSurface::Correction correction =
      surface.at(point_of(attention.batch, attention.heads, attention.kv_heads,
                          attention.query_length, mean_head_dim(attention), attention.causal));
  out.time *= std::exp(correction.log_factor);
  out.provenance = provenance_of(correction, attention_samples_provenance_);
  if (attention_.back_to_back > 0 && !attention.backward) {
    out.provenance = std::max(out.provenance, Provenance::kInterpolated);  // not a step's own
  }
  return out;
}

KernelPrice KernelCosts::price(const MemoryBound& kernel) const {
  const bool in_steps = style_ == KernelStyle::kInSteps;
  // No compiler joins the steps of a softmax that has no kernel of its own. Those of a loss are in
  // what the host spends on a micro-batch.
  const bool apart = kernel.kind == MemoryBoundKind::kSoftmax;
  return {memory_bound_time(profile_.memory, accelerator_, kernel, in_steps),
          in_steps || apart ? kernel.launches : 1, traffic_of(kernel, in_steps),
          Curve::kMemoryBound, profile_.memory_provenance};
}

}  // namespace stepcast
