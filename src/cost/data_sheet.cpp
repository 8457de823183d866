// SPDX-License-Identifier: Apache-2.0
// Fractions of the data sheet's rates by family of kernels, for a device that nobody has measured.
#include "cost/profile.h"

namespace stepcast {
namespace {

// A processor's core runs the kernels as calls, one after the other: no launches, no waves over
// SMs, tiles of a BLAS micro-kernel's size.
void describe_core(Profile& profile) {
  profile.host.fill(kNoHost);
  profile.gemm.tile_m = profile.gemm.tile_n = 16;
  profile.gemm.tile_half = 0;
  profile.gemm.k_half = 16;
  profile.gemm.misaligned_factor = 1;
  profile.gemm.overhead_s = profile.attention.overhead_s = profile.memory.overhead_s = 0.5e-6;
  profile.attention.blocks_half = profile.attention.backward_blocks_half = 0;
  profile.sigma = {0.4, 0.6, 0.5, 0.3, 0.5, 0.5};  // processors differ more than GPUs of a family
}

}  // namespace

Profile data_sheet_profile(const Accelerator& accelerator) {
  const ArchitectureTraits& family = traits_of(accelerator.architecture);
  Profile out;
  out.name = "data-sheet";
  out.device = accelerator.name;
  out.provenance = Provenance::kDataSheet;
  out.gemm.efficiency = family.product_efficiency;
  out.gemm.k_half = 100;
  out.gemm.tile_half = 20;
  out.gemm.wave_weight = 0.5;
  out.gemm.overhead_s = 3e-6;
  out.gemm.misaligned_factor = 1.26;
  out.gemm_fp8.fit = out.gemm;
  out.gemm_fp8.fit.efficiency *= 0.9;  // max achievable fp8 against bf16: 0.88 to 0.99 (same table)
  const double attention = family.attention_efficiency;
  out.attention.forward_efficiency = attention;
  out.attention.backward_efficiency = 0.85 * attention;
  out.attention.causal_efficiency = 0.92;
  out.attention.causal_half_length = 220;
  out.attention.length_half = out.attention.backward_length_half = 100;
  out.attention.blocks_half = out.attention.backward_blocks_half = 1;
  out.attention.overhead_s = 3e-6;
  // Streaming kernels reach 0.72 to 0.89 of the sheet (RRZE-HPC/gpu-benches@1038c5d, gpu-stream).
  out.memory.fraction = 0.80;
  out.memory.overhead_s = 1.3e-6;
  out.gemm.memory_fraction = out.gemm_fp8.fit.memory_fraction = out.memory.fraction;
  out.sigma = {0.15, 0.20, 0.15, 0.30, 0.20, 0.20};
  if (accelerator.is_cpu()) describe_core(out);
  return out;
}

}  // namespace stepcast
