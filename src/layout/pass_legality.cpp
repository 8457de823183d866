// SPDX-License-Identifier: Apache-2.0
// Checks what passes over layers may do: run again, beside each other, and be launched as a graph.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "layout/legality.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

void check_recompute(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "layout.recompute"})) return;
  const Recompute& r = s.layout.recompute;
  if (std::max(r.layers, r.every) > s.model.layers) {
    findings.illegal(r.layers > r.every ? "layout.recompute.layers" : "layout.recompute.every",
                     fmt::format("{} exceeds the model's layers", std::max(r.layers, r.every)),
                     fmt::format("at most {}", s.model.layers));
  }
  if (!r.modules.has(RecomputedModule::kOperations)) return;
  if (r.modules.named.size() > 1) {
    findings.illegal(
        "layout.recompute.modules",
        "torchtitan_op beside other modules: it chooses among all operations of a layer",
        "torchtitan_op alone");
  }
  if (!findings.trusts({"training.framework"})) return;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (!framework.recomputes_operations) {
    findings.illegal("layout.recompute.modules",
                     fmt::format("torchtitan_op with framework {}", framework.name),
                     fmt::format("framework {}, or modules that the framework has",
                                 frameworks_with(&FrameworkTraits::recomputes_operations)));
  }
}

// Megatron-LM, megatron/training/arguments.py: overlap_moe_expert_parallel_comm.
void check_expert_overlap(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (!l.overlap.ep) return;
  if (!findings.trusts({"model", "training.framework", "layout.overlap.ep", "layout.ep",
                        "layout.pp", "layout.virtual_stages", "layout.recompute"})) {
    return;
  }
  const auto illegal = [&](const std::string& what, const std::string& fix) {
    findings.illegal("layout.overlap.ep", what, fix);
  };
  if (!s.model.moe) {
    illegal("a model without experts exchanges no tokens", "false");
    return;
  }
  if (s.model.moe->dispatcher == MoeDispatcher::kAllGather) {
    illegal("dispatcher allgather gathers whole batches", "dispatcher alltoall or flex, or false");
  }
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (!framework.pairs_passes) {
    illegal(fmt::format("framework {} runs one micro-batch after the other", framework.name),
            fmt::format("framework {}, or false", frameworks_with(&FrameworkTraits::pairs_passes)));
  }
  if (l.ep == 1) illegal("ep = 1 exchanges no tokens", "ep 2 or more, or false");
  if (l.pp > 1 && l.virtual_stages == 1) {
    illegal("a pipeline without virtual stages has no other micro-batch at hand",
            "virtual_stages 2 or more, or false");
  }
  if (s.model.mtp_layers > 1) {
    illegal(fmt::format("{} prediction modules run with their layer", s.model.mtp_layers),
            "at most one, or false");
  }
  if (l.recompute.mode == RecomputeMode::kFull ||
      l.recompute.modules.has(RecomputedModule::kExperts)) {
    illegal("recomputing experts exchanges their tokens once more",
            "recompute none or selective without moe, or false");
  }
}

// Megatron-LM, core/model_parallel_config.py: delay_wgrad_compute asks for the overlap.
void check_delayed_experts(const Scenario& s, Findings& findings) {
  if (!s.layout.overlap.expert_wgrad || s.layout.overlap.ep) return;
  if (!findings.trusts({"layout.overlap.ep", "layout.overlap.expert_wgrad"})) return;
  findings.illegal("layout.overlap.expert_wgrad",
                   "without overlap.ep no exchange is issued ahead of weight gradients",
                   "overlap.ep true, or false here");
}

// Megatron-LM, core/transformer/transformer_config.py: moe_shared_expert_overlap.
void check_shared_experts(const Scenario& s, Findings& findings) {
  constexpr const char* kKey = "layout.overlap.shared_experts";
  const Layout& l = s.layout;
  if (!l.overlap.shared_experts) return;
  if (!findings.trusts({"model", "training.framework", "layout.overlap.ep", kKey, "layout.ep"})) {
    return;
  }
  const auto illegal = [&](const std::string& what, const std::string& fix) {
    findings.illegal(kKey, what, fix);
  };
  if (!s.model.moe || s.model.moe->shared_ffn == 0) {
    return illegal("a model without shared experts has nothing to run there", "false");
  }
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (!framework.hides_in_exchanges) {
    illegal(fmt::format("framework {} runs them before the exchange", framework.name),
            fmt::format("framework {}, or false",
                        frameworks_with(&FrameworkTraits::hides_in_exchanges)));
  }
  if (s.model.moe->dispatcher != MoeDispatcher::kAllToAll) {
    illegal("Megatron has it with dispatcher alltoall alone", "dispatcher alltoall, or false");
  }
  if (l.ep == 1) illegal("ep = 1 exchanges no tokens", "ep 2 or more, or false");
  if (l.overlap.ep) {
    illegal("with overlap.ep another micro-batch runs there", "overlap.ep false, or false here");
  }
}

// Transformer Engine, pytorch/ops/fused/forward_grouped_mlp.py, and Megatron-LM,
// core/transformer/transformer_config.py: moe_paged_stash.
void check_fused_experts(const Scenario& s, Findings& findings) {
  if (!s.model.moe || !findings.trusts({"model", "training", "layout.recompute", "cluster"})) {
    return;
  }
  constexpr const char* kKey = "model.moe.fused_mlp";
  const Training& t = s.training;
  if (!s.model.moe->fused_mlp) {
    if (s.model.moe->stash_factor > 0) {
      findings.illegal("model.moe.stash_factor",
                       "the fused kernels alone mark what goes into the stash",
                       "0, or fused_mlp true");
    }
    return;
  }
  const auto illegal = [&](const std::string& what, const std::string& fix) {
    findings.illegal(kKey, what, fix);
  };
  const FrameworkTraits& framework = traits_of(t.framework);
  if (!framework.fuses_experts) {
    illegal(
        fmt::format("framework {} has no such kernels", framework.name),
        fmt::format("framework {}, or false", frameworks_with(&FrameworkTraits::fuses_experts)));
  }
  if (!is_scaled(t.precision) || !fp8_of(s).recipe->fuses_experts) {
    illegal("the kernels cast for mxfp8 and nvfp4",
            "precision fp8 with recipe mxfp8, precision fp4, or false");
  }
  if (s.model.mlp != Mlp::kSwiglu) illegal("the kernels have gated activations", "false");
  if (t.trains_adapters()) illegal("adapters stand between product and activation", "false");
  if (s.layout.recompute.modules.has(RecomputedModule::kExpertActivation)) {
    illegal("the activation is part of a product and cannot be recomputed alone",
            "recompute without moe_act, or false");
  }
  const bool again = s.layout.recompute.mode == RecomputeMode::kFull ||
                     s.layout.recompute.modules.has(RecomputedModule::kExperts);
  if (s.model.moe->stash_factor > 0 && again) {
    findings.illegal("model.moe.stash_factor", "recomputed experts leave nothing to stash",
                     "0, or recompute none or selective without moe");
  }
}

// Megatron-LM, core/model_parallel_config.py: defer_embedding_wgrad_compute.
void check_deferred_head(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  constexpr const char* kKey = "layout.defer_head_wgrad";
  if (l.defer_head_wgrad == 0 || !findings.trusts({"layout.defer_head_wgrad"})) return;
  if (findings.trusts({"layout.pp"}) && l.pp == 1) {
    findings.illegal(kKey, "without a pipeline there is no end of it to wait for", "0");
  }
  if (findings.trusts({"training.framework"})) {
    const FrameworkTraits& framework = traits_of(s.training.framework);
    if (!framework.defers_head) {
      findings.illegal(
          kKey, fmt::format("framework {} defers none", framework.name),
          fmt::format("framework {}, or 0", frameworks_with(&FrameworkTraits::defers_head)));
    }
  }
  if (findings.trusts({"layout.schedule"}) && splits_backward(s.layout)) {
    findings.illegal(kKey,
                     fmt::format("schedule {} has all weight gradients in passes of their own",
                                 rules_of(l.schedule).name),
                     "0, or a schedule with whole backwards");
  }
}

void check_cuda_graphs(const Scenario& s, Findings& findings) {
  if (s.training.cuda_graphs != CudaGraphs::kMoe || s.model.moe || !findings.trusts({"model"})) {
    return;
  }
  findings.illegal("training.cuda_graphs", "moe for a model without experts",
                   "true, attention or false");
}

}  // namespace

void check_passes(const Scenario& scenario, Findings& findings) {
  check_recompute(scenario, findings);
  check_expert_overlap(scenario, findings);
  check_delayed_experts(scenario, findings);
  check_shared_experts(scenario, findings);
  check_fused_experts(scenario, findings);
  check_deferred_head(scenario, findings);
  check_cuda_graphs(scenario, findings);
}

}  // namespace stepcast
