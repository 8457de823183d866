// SPDX-License-Identifier: Apache-2.0
// The keys of `training` beyond framework, precision, batch and sequence.
#include <fmt/format.h>

#include <algorithm>

#include "generate/sketch.h"
#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "schedule/schedule.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

// Before the layout, which asks for them: adapters and unfused attention.
void draw_mode(Draw& draw, Sketch& s) {
  const bool shared_experts = s.model.moe && s.etp > 1;  // whose adapters are not lowered
  if (shared_experts || s.precision == DataType::kFp4 || !draw.chance(0.15)) {
    if (draw.chance(0.1)) s.set("training.mode", name_of(TrainingMode::kPretrain));
    return;
  }
  s.adapters = true;
  s.set("training.mode", draw.word({"lora", "qlora"}));
  if (draw.chance(0.5)) s.set("training.lora_rank", draw.number({1, 8, 64}));
  if (draw.chance(0.3)) s.set("training.lora_dropout", 0.1);
  if (!draw.chance(0.5)) return;
  json targets = json::array();
  for (const std::string& target : adapter_target_names()) {
    if (draw.chance(0.5)) targets.push_back(target);
  }
  if (!targets.empty()) s.set("training.lora_targets", targets);
}

void draw_attention(Draw& draw, Sketch& s) {
  if (!draw.chance(0.3)) return;
  s.unfused = s.cp == 1 && draw.chance(0.5);
  s.set("training.attention",
        name_of(s.unfused ? AttentionKernel::kUnfused : AttentionKernel::kFlash));
  if (draw.chance(0.5)) {
    s.set("training.attention_kernel",
          s.unfused ? "unfused" : draw.word({"triton", "fa1", "fa2", "fa3", "cudnn"}));
  }
}

// Products in fp8 and fp4 have layers in 16 bits in common; the rest is of fp4.
void draw_narrow(Draw& draw, Sketch& s) {
  if (s.framework->keeps_wide_layers && is_scaled(s.precision) && draw.chance(0.5)) {
    const std::int64_t at_start = draw.below(2);
    s.set("training.first_layers_16_bits", at_start);
    s.set("training.last_layers_16_bits", draw.below(s.model.layers - at_start + 1));
  }
  if (s.precision != DataType::kFp4) return;
  const bool mixed = draw.chance(0.5);
  if (mixed || draw.chance(0.8)) s.set("training.fp4_products", mixed ? "mlp" : "all");
  if (draw.chance(0.4)) s.set("training.fp8_params", !mixed && draw.chance(0.7));
  if (draw.chance(0.4)) s.set("training.fp8_attention", mixed && draw.chance(0.7));
}

void draw_fp8(Draw& draw, Sketch& s) {
  if (s.precision != DataType::kFp8) return;
  const ArchitectureTraits& device = traits_of(s.cluster.spec.accelerator.architecture);
  std::vector<const Fp8Recipe*> fitting;
  for (const Fp8Recipe& recipe : fp8_recipes()) {
    if (s.fuses_experts && !recipe.fuses_experts) continue;
    if (!recipe.needs_block_scales || device.has_block_scales) fitting.push_back(&recipe);
  }
  // The framework's own takes no blocks, and runs attention.
  const Fp8Recipe* recipe = &fp8_recipes().front();
  if (s.fuses_experts || draw.chance(0.8)) {
    recipe = draw.of(fitting);
    s.set("training.fp8_recipe", recipe->name);
  }
  const bool runs_attention = recipe->runs_attention;
  if (draw.chance(0.4)) s.set("training.fp8_params", draw.chance(0.7));
  if (draw.chance(0.4)) s.set("training.fp8_attention", runs_attention && draw.chance(0.7));
  const bool runs_head = recipe->runs_head && s.framework->has_fp8_head && !s.adapters &&
                         !s.model.tied_embeddings && !s.states("layout.defer_head_wgrad");
  if (draw.chance(0.3)) s.set("training.fp8_head", runs_head && draw.chance(0.7));
}

void draw_gradients(Draw& draw, Sketch& s) {
  std::vector<std::string> types = {"fp32"};
  if (s.wide() != DataType::kFp32) types.emplace_back(name_of(s.wide()));
  if (draw.chance(0.3)) s.set("training.grad_precision", draw.of(types));
  if (draw.chance(0.3)) s.set("training.reduce_precision", draw.of(types));
  if (draw.chance(0.2)) s.set("training.moments_precision", draw.word({"fp32", "bf16"}));
  if (s.framework->checkpoint_stops_early_since && draw.chance(0.1)) {
    s.set("training.early_stop", true);
  }
  if (s.framework->has_narrow_weights && s.wide() == DataType::kBf16 && draw.chance(0.2)) {
    s.set("training.master_precision", draw.word({"bf16", "bf16", "fp32"}));
  }
  if (draw.chance(0.3)) {
    std::string clip = draw.word({"global", "none", "post_validation"});
    if (clip == "post_validation" && !s.schedule->validates_after_step) clip = "global";
    s.set("training.grad_clip", clip);
  }
  const bool has_muon = s.framework->has_muon && s.zero <= s.framework->most_zero_of_muon;
  if (has_muon && !s.adapters && !s.offloads && draw.chance(0.15)) {
    s.set("training.optimizer", "muon");
    const auto modes = s.framework->muon_modes;
    const std::vector<MuonMode> choice(modes.begin(), modes.end());
    if (draw.chance(0.7)) s.set("training.muon_mode", name_of(draw.of(choice)));
  }
  if (!s.states("training.optimizer") && !s.states("training.moments_precision") &&
      draw.chance(0.15)) {
    const bool small = s.framework->has_small_optimizers && !s.offloads;
    s.set("training.optimizer", small ? draw.word({"adamw_8bit", "adafactor", "sgd"}) : "sgd");
  }
  const bool partitions = s.zero >= 2 && s.framework->check_zero != nullptr;
  if (draw.chance(0.2)) s.set("training.no_sync", !partitions && draw.chance(0.7));
}

void draw_launches(Draw& draw, Sketch& s) {
  if (draw.chance(0.3)) s.set("training.compile", draw.chance(0.5));
  if (draw.chance(0.2)) {
    const std::string graphs = draw.word({"true", "false", "full", "attention", "moe"});
    if (graphs == "true" || graphs == "false") {
      s.set("training.cuda_graphs", graphs == "true");
    } else if (graphs != "moe" || s.model.moe) {
      s.set("training.cuda_graphs", graphs);
    }
  }
  const bool apart =
      s.schedule->splits_backward || s.schedule->from_file || s.states("layout.defer_head_wgrad");
  constexpr std::int64_t kMostParts = 16;
  const std::int64_t row = s.file["training"]["sequence_length"];
  if (!apart && row >= kMostParts * s.cp && draw.chance(0.1)) {
    s.set("training.loss_chunks", draw.number({1, 2, 7, kMostParts}));
  }
  const bool slides = traits_of(s.cluster.spec.accelerator.architecture).moves_by_tma;
  if (draw.chance(0.1)) s.set("training.vboost", slides && draw.chance(0.7));
  if (draw.chance(0.1)) s.set("training.launch_blocking", draw.chance(0.7));
  for (const char* flag :
       {"host_sync_after_p2p", "host_sync_at_batch", "fused_gradient_accumulation",
        "fused_cross_entropy", "async_tensor_backward", "scatter_gather_p2p"}) {
    if (draw.chance(0.15)) s.set(fmt::format("training.{}", flag), draw.chance(0.5));
  }
  if (draw.chance(0.2)) s.set("training.bucket_elements", draw.number({0, 100000, 50000000}));
  if (draw.chance(0.15)) {
    s.set("training.gather_bucket_elements", draw.number({0, 200000, 50000000}));
  }
  if (draw.chance(0.15)) s.set("training.prefetch_units", draw.number({0, 1}));
}

// Old releases have no attention but the unfused one.
void draw_documents(Draw& draw, Sketch& s) {
  if (s.unfused || s.states("training.release") || !draw.chance(0.15)) return;
  const std::int64_t row = s.file["training"]["sequence_length"];
  s.set("training.document_length", std::max<std::int64_t>(1, row / draw.number({1, 2, 7, 20})));
  if (draw.chance(0.6)) s.set("training.document_deviation", draw.number({0, 5, 100, 3000}));
}

}  // namespace

void draw_mode_and_attention(Draw& draw, Sketch& s) {
  draw_mode(draw, s);
  draw_attention(draw, s);
}

// The library and its environment.
void draw_software(Draw& draw, Sketch& s) {
  if (!draw.chance(0.12)) return;
  s.set("software.nccl", draw.word({"2.18", "2.19.4", "2.21", "2.23", "2.26", "2.28", "2.30",
                                    "2.31", "2024-04", "nvcr.io/nvidia/pytorch:25.04-py3"}));
  if (draw.chance(0.2)) {
    s.set("software.NCCL_ALGO",
          draw.word({"ring", "ring,tree", "^nvls", "^pat", "allgather:pat,ring;allreduce:tree"}));
  }
  if (draw.chance(0.1)) s.set("software.NCCL_PROTO", draw.word({"simple", "^ll128", "LL,Simple"}));
}

// Makes the cluster at hand one island of a larger one.
void draw_outer_steps(Draw& draw, Sketch& s) {
  const ClusterSpec& spec = s.cluster.spec;
  json& cluster = s.file["cluster"];
  const bool whole = cluster.is_object() && cluster.contains("nodes") && !spec.is_graph &&
                     spec.failed.empty() && spec.other_gpus.empty() && spec.sites == 1 &&
                     spec.nics_per_node > 0 && spec.gpus == spec.nodes * spec.gpus_per_node;
  if (!s.framework->outer_steps || !whole || !draw.chance(0.45)) return;
  const std::int64_t islands = draw.number({2, 3, 4});
  cluster["nodes"] = spec.nodes * islands;
  cluster["nvlink_domain_nodes"] = std::min(spec.nvlink_domain_nodes, spec.nodes);
  if (draw.chance(0.5)) {
    cluster["sites"] = islands;
    cluster["wan"] = "10 Gb/s";
    cluster["wan_latency"] = "20 ms";
  }
  s.set("training.outer.islands", islands);
  const std::int64_t every = draw.number({4, 30, 500});
  s.set("training.outer.every", every);
  if (draw.chance(0.5)) s.set("training.outer.precision", draw.word({"fp32", "bf16", "fp4"}));
  const std::int64_t fragments =
      draw.chance(0.7) ? 1 + draw.below(std::min(s.model.layers, every)) : 1;
  if (fragments > 1) s.set("training.outer.fragments", fragments);
  if (draw.chance(0.5)) {
    s.set("training.outer.overlap_steps", draw.below(every / fragments + 1));
  }
  if (draw.chance(0.6)) s.set("training.outer.host", draw.chance(0.5));
}

void draw_training(Draw& draw, Sketch& s) {
  draw_fp8(draw, s);
  draw_narrow(draw, s);
  draw_gradients(draw, s);
  draw_launches(draw, s);
  if (!s.states("training.optimizer") && draw.chance(0.1)) s.set("training.optimizer", "adamw");
  if (draw.chance(0.15)) {
    const auto year = 2020 + draw.below(7);
    const auto month = 1 + draw.below(12);
    s.set("training.release", fmt::format("{}-{:02}", year, month));
  }
  draw_documents(draw, s);
  draw_software(draw, s);
  if (draw.chance(0.1)) s.set("training.software", draw.word({"a label", "25.03", "<b>"}));
  const bool stores_fp8 =
      s.framework->stores_fp8_inputs && s.model.mlp == Mlp::kSwiglu && !s.fuses_experts;
  if (draw.chance(0.2)) s.set("training.fp8_activation_input", stores_fp8 && draw.chance(0.7));
  if (draw.chance(0.15)) s.set("training.record_streams", draw.chance(0.6));
  draw_outer_steps(draw, s);
}

}  // namespace stepcast::generate
