// SPDX-License-Identifier: Apache-2.0
#include "cost/gemm_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/assert.h"

namespace stepcast {
namespace {

struct Tile {
  double m, n;
};

// The shapes a library chooses among: the largest both ways round, then halves of it.
std::array<Tile, 6> tile_menu(const GemmFit& fit) {
  const double wide = std::max(fit.tile_m, fit.tile_n), narrow = std::min(fit.tile_m, fit.tile_n);
  return {Tile{wide, narrow},       Tile{narrow, wide},       Tile{narrow, narrow},
          Tile{narrow, narrow / 2}, Tile{narrow / 2, narrow}, Tile{narrow / 2, narrow / 2}};
}

double blocks_along(std::int64_t length, double tile) {
  return std::ceil(static_cast<double>(length) / tile);
}

// Multiply-adds per operand element loaded, in elements: what hides the loads behind the math.
double reuse(Tile tile) { return tile.m * tile.n / (tile.m + tile.n); }

// Rounds of blocks over the SMs. Below one round the slowest block is the time.
double waves(double blocks, double sms, double wave_weight) {
  const double rounds = blocks / sms;
  if (rounds <= 1) return 1;
  return rounds + wave_weight * (std::ceil(rounds) - rounds);
}

// Rows that whole vectors of 16 bytes can be loaded from, down to single elements.
std::int64_t halvings_below_vectors(const Gemm& gemm) {
  const std::int64_t row = gemm.role == GemmRole::kWeightGradient ? gemm.m : gemm.k;
  std::int64_t unit =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(16 / width_of(gemm.input)));
  std::int64_t out = 0;
  for (; unit > 1 && (row % unit != 0 || gemm.n % unit != 0); unit /= 2) ++out;
  return out;
}

// Among batched products of 16-bit types the library has kernels for tensor cores only where every
// matrix begins at a whole vector: the others run on the ordinary pipeline.
bool leaves_matrix_units(const Gemm& gemm) {
  return gemm.batch > 1 && size_of(gemm.input) == 2 && halvings_below_vectors(gemm) > 0;
}

double misalignment(const GemmFit& fit, const Gemm& gemm) {
  if (leaves_matrix_units(gemm)) return 1;
  return std::pow(fit.misaligned_factor, static_cast<double>(halvings_below_vectors(gemm)));
}

// Partial sums of a split k are written and added in fp32.
double split_traffic(const Gemm& gemm, double split) {
  if (split <= 1) return 0;
  return 8.0 * split * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(gemm.n);
}

// The power limit slows products that take `seconds` at full clocks by this factor.
double throttling(const GemmFit& fit, double seconds, Pace pace) {
  if (pace == Pace::kBackToBack && fit.back_to_back > 0) return fit.back_to_back;
  return 1 + (fit.sustained_factor - 1) * seconds / (seconds + fit.sustained_s);
}

// Takes the clocks to be full.
double compute_seconds(const GemmFit& fit, double sms, double peak, double bandwidth,
                       const Gemm& gemm) {
  const auto menu = tile_menu(fit);
  const double best_reuse = reuse(menu[0]) / (reuse(menu[0]) + fit.tile_half);
  const double rate_of_sm = peak * fit.efficiency / sms;
  const double k = static_cast<double>(gemm.k);
  double best = 0;
  for (const Tile tile : menu) {
    const double blocks = static_cast<double>(gemm.batch) * blocks_along(gemm.m, tile.m) *
                          blocks_along(gemm.n, tile.n);
    const double rate = rate_of_sm * (reuse(tile) / (reuse(tile) + fit.tile_half)) / best_reuse;
    for (double split = 1; split <= 16; split *= 2) {
      const double time = waves(blocks * split, sms, fit.wave_weight) * 2 * tile.m * tile.n *
                              (k / split + fit.k_half) / rate +
                          split_traffic(gemm, split) / bandwidth;
      if (best == 0 || time < best) best = time;
      if (blocks * split >= 2 * sms) break;  // enough blocks: splitting further only adds traffic
    }
  }
  return best * misalignment(fit, gemm) * fit.role_factor[static_cast<std::size_t>(gemm.role)];
}

// A processor has one pipeline, and an accelerator states what its ordinary one does in fp32.
FlopsPerSecond arithmetic_peak(const Accelerator& accelerator, const Gemm& gemm) {
  const auto ordinary = accelerator.peak(DataType::kFp32);
  const bool leaves = !accelerator.is_cpu() && ordinary && leaves_matrix_units(gemm);
  return leaves ? *ordinary : matrix_peak(accelerator, gemm.input);
}

}  // namespace

FlopsPerSecond matrix_peak(const Accelerator& accelerator, DataType type) {
  const bool wide = size_of(type) == 4;
  for (const DataType candidate : {type, wide ? DataType::kFp32 : DataType::kBf16,
                                   wide ? DataType::kFp32 : DataType::kFp16, DataType::kFp32}) {
    if (const auto peak = accelerator.peak(candidate)) return *peak;
  }
  STEPCAST_ASSERT(!accelerator.dense_peak.empty(), "an accelerator states a peak");
  return accelerator.dense_peak.begin()->second;
}

Bytes traffic_of(const Gemm& gemm) {
  const double m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
               k = static_cast<double>(gemm.k);
  const double operands = (m * k + k * n) * width_of(gemm.input);
  const double result =
      m * n * static_cast<double>(size_of(gemm.output)) * (gemm.accumulate ? 2.0 : 1.0);
  return Bytes(static_cast<double>(gemm.batch) * (operands + result));
}

Gemm gemm_of(const GemmSample& sample, DataType type) {
  return {sample.role,
          sample.batch,
          sample.m,
          sample.n,
          sample.k,
          type,
          sample.output_bytes > 2 ? DataType::kFp32 : DataType::kBf16,
          sample.accumulate};
}

Seconds gemm_form_time(const GemmFit& fit, const Accelerator& accelerator, const Gemm& gemm,
                       Pace pace) {
  const double bandwidth = fit.memory_fraction * accelerator.memory_bandwidth.value();
  const double full_clock =
      compute_seconds(fit, static_cast<double>(accelerator.sm_count),
                      arithmetic_peak(accelerator, gemm).value(), bandwidth, gemm);
  const double compute = full_clock * throttling(fit, full_clock, pace);
  const double memory = traffic_of(gemm).value() / bandwidth;
  // A soft maximum: near balance neither hides entirely behind the other.
  const double c2 = compute * compute, m2 = memory * memory;
  // One large tile fills an SM, so its epilogue runs beside no other tile's products.
  const double result = static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
                        static_cast<double>(gemm.n) * static_cast<double>(size_of(gemm.output));
  const double epilogue = gemm.accumulate ? fit.accumulate_exposed * 2 * result / bandwidth : 0;
  return Seconds(fit.overhead_s + std::sqrt(std::sqrt(c2 * c2 + m2 * m2)) + epilogue);
}

Seconds grouped_form_time(const GroupedFit& grouped, const GemmFit& fit,
                          const Accelerator& accelerator, const Gemm& gemm, Pace pace) {
  GemmFit of_groups = fit;
  double rate = grouped.rate;
  if (gemm.input == DataType::kFp8 && grouped.rate_fp8 > 0) rate = grouped.rate_fp8;
  if (gemm.input == DataType::kFp4 && grouped.rate_fp4 > 0) rate = grouped.rate_fp4;
  of_groups.efficiency *= rate;
  of_groups.memory_fraction *= grouped.bandwidth;
  return gemm_form_time(of_groups, accelerator, gemm, pace) *
             grouped.role_factor[static_cast<std::size_t>(gemm.role)] +
         Seconds(grouped.group_s * static_cast<double>(gemm.batch));
}

}  // namespace stepcast
