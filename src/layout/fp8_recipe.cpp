// SPDX-License-Identifier: Apache-2.0
#include "layout/fp8_recipe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cluster/gpu_architecture.h"
#include "core/assert.h"
#include "layout/scenario.h"
#include "layout/training.h"

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
              .needs_block_scales = true,
              .runs_head = true,
              .fuses_experts = true},
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

// Transformer Engine, common/recipe (NVFP4BlockScaling): blocks of 16 with an fp8 scale, and one
// scale of the tensor, for which its largest element is found first. Weights have blocks of 16 x
// 16, whose scale each row of a block carries.
constexpr Fp8Recipe kNvfp4Recipe{.name = "nvfp4",
                                 .finds_scale = true,
                                 .scales_by_direction = true,
                                 .scale_bytes = 1.0 / 16,
                                 .weight_scale_bytes = 1.0 / 16,
                                 .runs_attention = false,
                                 .needs_block_scales = true,
                                 .fuses_experts = true,
                                 .type = DataType::kFp4,
                                 .transforms = true};

// Open Compute Project, MX formats: blocks of 32 with a power of two, which the cast reads once.
// AMD's products take them (CDNA 4).
constexpr Fp8Recipe kMxfp4Recipe{.name = "mxfp4",
                                 .scales_by_direction = true,
                                 .scale_bytes = 1.0 / 32,
                                 .weight_scale_bytes = 1.0 / 32,
                                 .runs_attention = false,
                                 .needs_block_scales = true,
                                 .type = DataType::kFp4};

ByteCount with_scales(const Fp8Recipe& recipe, std::int64_t elements, double scale_bytes) {
  const double each = width_of(recipe.type) + scale_bytes;
  return static_cast<ByteCount>(std::ceil(static_cast<double>(elements) * each));
}

const Fp8Recipe* recipe_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(kRecipes, [&](const Fp8Recipe& recipe) { return name == recipe.name; });
  STEPCAST_ASSERT(found != kRecipes.end(), "fp8 training has a recipe");
  return &*found;
}

Fp8 with_recipe(const Scenario& scenario, const Fp8Recipe* found) {
  const ArchitectureTraits& device = traits_of(scenario.cluster.spec.accelerator.architecture);
  return {.recipe = found,
          .type = found->type,
          .transposes = !found->scales_by_direction && !device.reads_fp8_both_ways,
          .norm_writes = found->norm_writes && scenario.rules.norms_into_products,
          .norms_into_products = scenario.rules.norms_into_products,
          .norm_finds_scale = found->finds_scale && !found->transforms &&
                              (scenario.rules.norms_into_products || scenario.training.compile)};
}

}  // namespace

std::span<const Fp8Recipe> fp8_recipes() { return kRecipes; }

ByteCount Fp8::copy_bytes(std::int64_t elements) const {
  return with_scales(*recipe, elements, recipe->scale_bytes);
}

ByteCount Fp8::weight_bytes(std::int64_t elements) const {
  return (has_two_copies() ? 2 : 1) * with_scales(*recipe, elements, recipe->weight_scale_bytes);
}

Fp8 fp8_of(const Scenario& scenario) {
  const Training& training = scenario.training;
  if (!is_scaled(training.precision)) return {};
  if (training.precision == DataType::kFp4) {
    return with_recipe(scenario, training.mxfp4 ? &kMxfp4Recipe : &kNvfp4Recipe);
  }
  return with_recipe(scenario, recipe_named(training.fp8_recipe));
}

// torchao's converters leave what they are not told of to others: mxfp8 here
// (pytorch/ao pull request 4798).
Fp8 attention_fp8_of(const Scenario& scenario) {
  const Training& training = scenario.training;
  const bool mixed =
      training.precision == DataType::kFp4 && training.fp4_products == Fp4Products::kMlp;
  return mixed ? with_recipe(scenario, recipe_named("mxfp8")) : fp8_of(scenario);
}

}  // namespace stepcast
