// SPDX-License-Identifier: Apache-2.0
#include "layout/fp8_recipe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/assert.h"

namespace stepcast {
namespace {

constexpr double kFp32 = 4;

// Transformer Engine (common/recipe, pytorch/csrc/quantizer.cpp, module/layernorm_linear.py), and
// torchao's float8 for `rowwise`. A row of `rowwise` has one scale, whose bytes do not show.
constexpr std::array kRecipes = {
    Fp8Recipe{.name = "delayed", .norm_writes = true},
    Fp8Recipe{.name = "current", .finds_scale = true},
    Fp8Recipe{.name = "mxfp8",
              .scales_by_direction = true,
              .scale_bytes = 1.0 / 32,
              .weight_scale_bytes = 1.0 / 32,
              .norm_writes = true,
              .gathers_wide = true,
              .needs_block_scales = true},
    Fp8Recipe{.name = "blockwise",
              .scales_by_direction = true,
              .scale_bytes = kFp32 / 128,
              .weight_scale_bytes = kFp32 / (128 * 128),
              .cast_sums_bias = false,
              .runs_attention = false},
    Fp8Recipe{.name = "rowwise",
              .scales_by_direction = true,
              .gathers_wide = true,
              .runs_attention = false},
};

ByteCount with_scales(std::int64_t elements, double scale_bytes) {
  return elements + static_cast<ByteCount>(std::ceil(static_cast<double>(elements) * scale_bytes));
}

}  // namespace

std::span<const Fp8Recipe> fp8_recipes() { return kRecipes; }

ByteCount Fp8::copy_bytes(std::int64_t elements) const {
  return with_scales(elements, recipe->scale_bytes);
}

ByteCount Fp8::weight_bytes(std::int64_t elements) const {
  return (has_two_copies() ? 2 : 1) * with_scales(elements, recipe->weight_scale_bytes);
}

Fp8 fp8_of(const Scenario& scenario) {
  if (!is_scaled(scenario.training.precision)) return {};
  const auto found = std::ranges::find_if(kRecipes, [&](const Fp8Recipe& recipe) {
    return scenario.training.fp8_recipe == recipe.name;
  });
  STEPCAST_ASSERT(found != kRecipes.end(), "fp8 training has a recipe");
  const ArchitectureTraits& device = traits_of(scenario.cluster.spec.accelerator.architecture);
  return {.recipe = &*found,
          .type = scenario.training.precision,
          .transposes = !found->scales_by_direction && !device.reads_fp8_both_ways,
          .norm_writes = found->norm_writes && scenario.rules.norms_into_products,
          .norms_into_products = scenario.rules.norms_into_products,
          .norm_finds_scale = found->finds_scale &&
                              (scenario.rules.norms_into_products || scenario.training.compile)};
}

}  // namespace stepcast
