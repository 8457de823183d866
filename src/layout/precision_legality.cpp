// SPDX-License-Identifier: Apache-2.0
// Number types that do not go together, and products in fp8 and fp4.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cluster/accelerator.h"
#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "layout/keys.h"
#include "layout/legality.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

std::string devices_with_block_scales() {
  std::vector<std::string> titles;
  for (const GpuArchitecture architecture : all_architectures()) {
    const ArchitectureTraits& traits = traits_of(architecture);
    if (traits.has_block_scales) titles.emplace_back(traits.title);
  }
  return one_of(titles);
}

// Megatron-LM, core/transformer/mxfp8_output_proj.py.
void check_fp8_head(const Scenario& s, Findings& findings) {
  constexpr const char* kKey = "training.fp8_head";
  if (!s.training.fp8_head) return;
  if (!findings.trusts({"model", "training.framework", "training.precision", "training.fp8_recipe",
                        "training.mode", "layout.defer_head_wgrad", kKey})) {
    return;
  }
  const auto illegal = [&](const std::string& what, const std::string& fix) {
    findings.illegal(kKey, what, fix);
  };
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (!framework.has_fp8_head) {
    illegal(fmt::format("framework {} keeps the head in 16 bits", framework.name),
            fmt::format("framework {}, or false", frameworks_with(&FrameworkTraits::has_fp8_head)));
  }
  if (s.training.precision != DataType::kFp8 || !fp8_of(s).recipe->runs_head) {
    illegal("the head has products in mxfp8 alone", "precision fp8 with recipe mxfp8, or false");
  }
  if (s.model.tied_embeddings) {
    illegal("the head's module cannot take over the embedding's table",
            "tied_embeddings false, or false here");
  }
  if (s.layout.defer_head_wgrad > 0) {
    illegal("its weight gradient cannot wait", "defer_head_wgrad 0, or false here");
  }
  if (s.training.trains_adapters()) illegal("adapters leave the head as it is", "false");
}

// Megatron-LM, core/transformer/transformer_config.py: activation_func_fp8_input_store.
void check_fp8_activation_input(const Scenario& s, Findings& findings) {
  constexpr const char* kKey = "training.fp8_activation_input";
  if (!s.training.fp8_activation_input) return;
  if (!findings.trusts({"model", "training.framework", "cluster", kKey})) return;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (!framework.stores_fp8_inputs) {
    findings.illegal(kKey, fmt::format("framework {} stores what it has read", framework.name),
                     fmt::format("framework {}, or false",
                                 frameworks_with(&FrameworkTraits::stores_fp8_inputs)));
  }
  if (s.model.mlp != Mlp::kSwiglu) {
    findings.illegal(kKey, "only SwiGLU stores its input in fp8", "mlp swiglu, or false");
  }
  if (s.model.moe && s.model.moe->fused_mlp) {
    findings.illegal(kKey, "products of experts that activate keep what they make",
                     "model.moe.fused_mlp false, or false here");
  }
}

// The device has fp8 at all: check_device() has told.
void check_fp8(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"training.framework", "training.fp8_recipe", "cluster"})) return;
  const Fp8 fp8 = fp8_of(s);
  for (const Accelerator* device : s.cluster.accelerators()) {
    if (!fp8.recipe->needs_block_scales || traits_of(device->architecture).has_block_scales) {
      continue;
    }
    findings.illegal("training.fp8_recipe",
                     fmt::format("{} has no scales for pieces of 32 elements", device->name),
                     fmt::format("precision fp8, recipe blockwise, current or delayed; {} needs {}",
                                 fp8.recipe->name, devices_with_block_scales()));
    break;
  }
  if (s.training.fp8_attention && s.training.precision == DataType::kFp8 &&
      !fp8.recipe->runs_attention) {
    findings.illegal("training.fp8_attention",
                     fmt::format("no kernel takes the scales of {}", fp8.recipe->name),
                     "false, or recipe delayed, current or mxfp8");
  }
}

// First and last layers, and products that stay in more bits.
void check_fp4(const Scenario& s, const Stated& stated, Findings& findings) {
  const Training& t = s.training;
  const FrameworkTraits& framework = traits_of(t.framework);
  const bool fp4 = t.precision == DataType::kFp4;
  if (stated.has("training.fp4_products") && !fp4) {
    findings.illegal("training.fp4_products",
                     fmt::format("with precision {}", name_of(t.precision)), "precision fp4");
  }
  if (!findings.trusts({"training.framework", "training.precision"})) return;
  if (fp4 && !framework.has_fp4) {
    findings.illegal("training.precision", fmt::format("fp4 with framework {}", framework.name),
                     "framework " + frameworks_with(&FrameworkTraits::has_fp4));
  }
  const Accelerator& device = s.cluster.spec.accelerator;
  const bool can_multiply = findings.trusts({"cluster"}) && device.peak(DataType::kFp4);
  const ArchitectureTraits& traits = traits_of(device.architecture);
  if (fp4 && can_multiply && !(t.mxfp4 ? traits.has_mxfp4 : traits.has_nvfp4)) {
    const bool other = traits.has_nvfp4 || traits.has_mxfp4;
    findings.illegal(
        "training.precision",
        t.mxfp4 ? fmt::format("no framework trains in MXFP4 on {}", device.name)
                : fmt::format("{} has no scales for pieces of 16 elements, which fp4 takes (NVFP4)",
                              device.name),
        !other    ? "precision fp8"
        : t.mxfp4 ? "precision fp4 or fp8"
                  : "precision mxfp4 or fp8");
  }
  if (fp4 && t.fp4_products == Fp4Products::kAll && t.fp8_attention) {
    findings.illegal("training.fp8_attention", "fp8 attention beside products in fp4",
                     "false, or fp4_products mlp");
  }
  if (fp4 && t.fp4_products == Fp4Products::kMlp && t.fp8_params) {
    findings.illegal("training.fp8_params", "parameters of two types in one buffer",
                     "false, or fp4_products all");
  }
  const std::int64_t wide = t.first_layers_16_bits + t.last_layers_16_bits;
  if (wide == 0) return;
  const char* key =
      t.first_layers_16_bits > 0 ? "training.first_layers_16_bits" : "training.last_layers_16_bits";
  if (!is_scaled(t.precision)) {
    findings.illegal(key, fmt::format("with precision {}", name_of(t.precision)),
                     "precision fp8 or fp4");
  } else if (!framework.keeps_wide_layers) {
    findings.illegal(key, fmt::format("{} has all layers in one precision", framework.name),
                     "0, or framework " + frameworks_with(&FrameworkTraits::keeps_wide_layers));
  }
  if (findings.trusts({"model"}) && wide > s.model.layers) {
    findings.illegal(key, fmt::format("{} layers in 16 bits of {}", wide, s.model.layers),
                     fmt::format("at most {} in all", s.model.layers));
  }
}

void check_boost(const Scenario& s, Findings& findings) {
  if (!s.training.vboost || !findings.trusts({"training.vboost", "cluster"})) return;
  const Accelerator& device = s.cluster.spec.accelerator;
  if (traits_of(device.architecture).moves_by_tma) return;
  findings.illegal("training.vboost", fmt::format("{} has no boost slider", device.name),
                   "false, or a GPU of Hopper or Blackwell");
}

// The type of the weights that the optimizer updates.
void check_weights(const Scenario& s, Findings& findings) {
  const Training& t = s.training;
  if (t.master_precision == DataType::kFp32) return;
  if (!findings.trusts({"training.master_precision", "training.framework"})) return;
  const std::string words = fmt::format("{} with ", name_of(t.master_precision));
  if (!traits_of(t.framework).has_narrow_weights) {
    findings.illegal("training.master_precision",
                     fmt::format("{}framework {}", words, name_of(t.framework)),
                     "fp32, or framework " + frameworks_with(&FrameworkTraits::has_narrow_weights));
  } else if (t.wide() != t.master_precision) {
    findings.illegal("training.master_precision",
                     fmt::format("{}precision {}", words, name_of(t.precision)),
                     "fp32, or precision bf16");
  }
}

}  // namespace

void check_precision(const Scenario& s, const Stated& stated, Findings& findings) {
  if (!findings.trusts({"training"})) return;
  const Training& t = s.training;
  const auto mixes_halves = [&](DataType type) {
    return (t.precision == DataType::kFp16 && type == DataType::kBf16) ||
           (t.precision == DataType::kBf16 && type == DataType::kFp16) ||
           (t.wide() == DataType::kFp32 && type != DataType::kFp32);
  };
  const bool follows = t.master_precision != DataType::kFp32 &&
                       !stated.has("training.grad_precision");  // check_weights() tells
  if (mixes_halves(t.grad_precision) && !follows) {
    findings.illegal(
        "training.grad_precision",
        fmt::format("{} gradients of {} training", name_of(t.grad_precision), name_of(t.precision)),
        fmt::format("{} or fp32", name_of(t.precision)));
  }
  if (t.wide() != DataType::kFp32 && mixes_halves(t.reduce_precision) &&
      stated.has("training.reduce_precision")) {
    findings.illegal("training.reduce_precision",
                     fmt::format("{} on the wire of {} training", name_of(t.reduce_precision),
                                 name_of(t.precision)),
                     fmt::format("{} or fp32", name_of(t.precision)));
  }
  if (!t.fp8_recipe.empty() && t.precision != DataType::kFp8) {
    findings.illegal("training.fp8_recipe", fmt::format("with precision {}", name_of(t.precision)),
                     "precision fp8 takes a recipe");
  }
  check_boost(s, findings);
  check_weights(s, findings);
  if (is_scaled(t.precision)) check_fp8(s, findings);
  check_fp8_head(s, findings);
  check_fp8_activation_input(s, findings);
  check_fp4(s, stated, findings);
  if (t.lora_rank > 0 && !t.trains_adapters()) {
    findings.illegal("training.lora_rank", "with mode pretrain",
                     "it needs a mode first: training.mode=lora, or qlora");
  }
  if (t.lora_dropout > 0 && !t.trains_adapters()) {
    findings.illegal("training.lora_dropout", "with mode pretrain",
                     "mode lora or qlora has adapters");
  }
}

}  // namespace stepcast
