// SPDX-License-Identifier: Apache-2.0
// The list of what is legal and not modelled yet. An entry goes when its mechanism is lowered.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/legality.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Lists what no layout and no training of the model avoids.
std::vector<std::string> unsupported_parts(const Model& model) {
  std::vector<std::string> out;
  if (model.table_width() != model.hidden && model.mtp_layers > 0) {
    out.push_back(
        fmt::format("an embedding of width {} projected to {} with multi-token prediction",
                    model.embedding_width, model.hidden));
  }
  return out;
}

void check_model(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model"})) return;
  const Model& model = s.model;
  for (const std::string& what : unsupported_parts(model)) {
    findings.unsupported("model", what + " is");
  }
  if (model.table_width() != model.hidden && findings.trusts({"layout.tp"}) && s.layout.tp > 1) {
    findings.unsupported("layout.tp",
                         fmt::format("tp = {} with an embedding of width {} projected to {} is",
                                     s.layout.tp, model.embedding_width, model.hidden),
                         "use 1");
  }
  if (s.training.precision == DataType::kFp4 && s.training.trains_adapters()) {
    findings.unsupported("training.precision", "adapters beside products in fp4 are", "use bf16");
  }
}

// Ranks that share an expert would sum the gradients of the whole half of its adapters.
void check_adapters(const Scenario& s, Findings& findings) {
  if (!s.model.moe || !s.training.trains_adapters()) return;
  if (!findings.trusts({"model", "training.mode", "training.lora_targets", "layout.etp"})) return;
  if (s.layout.etp > 1 && s.training.lora_targets.has(AdapterTarget::kMlp)) {
    findings.unsupported("layout.etp",
                         fmt::format("adapters of experts that {} ranks share are", s.layout.etp),
                         "etp 1, or lora_targets without mlp");
  }
}

// Experts take the tokens of their own rank, which tensor parallel ranks hold apart only with
// sequence parallelism.
void check_experts(const Scenario& s, Findings& findings) {
  if (!s.model.moe || !findings.trusts({"model"})) return;
  const Layout& l = s.layout;
  if (findings.trusts({"layout.tp", "layout.sequence_parallel"}) && l.tp > 1 &&
      !l.sequence_parallel) {
    findings.unsupported("layout.sequence_parallel",
                         "a mixture of experts with tensor and without sequence parallelism is",
                         "use true");
  }
  const Schedule& schedule = rules_of(l.schedule);
  if (l.overlap.ep && findings.trusts({"layout.overlap.ep", "layout.schedule", "layout.zero"}) &&
      (l.zero > 1 || schedule.pairs == Pairs::kNone)) {
    findings.unsupported(
        "layout.overlap.ep",
        fmt::format("exchanging tokens beside another micro-batch with zero {} and schedule {} is",
                    l.zero, schedule.name),
        "zero 0 or 1 and schedule interleaved, dualpipe or dualpipev, or 1f1b without a pipeline");
  } else if (l.overlap.ep && l.pp > 1 && !l.overlap.pp && findings.trusts({"layout.overlap"})) {
    findings.unsupported("layout.overlap.ep",
                         "exchanging tokens beside another micro-batch without overlap.pp is",
                         "overlap.pp true, or false here");
  }
}

// An order from a file that can be read; check_legality() tells what is wrong in it.
void check_file(const Scenario& s, Findings& findings) {
  if (s.layout.schedule_text) return;
  findings.illegal("layout.schedule", fmt::format("cannot read '{}'", s.layout.schedule_file),
                   "a file of one row per stage, as stepcast export --to schedule writes");
}

void check_parallelism(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (findings.trusts({"layout.cp"}) && l.cp > 1 &&
      s.training.attention == AttentionKernel::kUnfused) {
    findings.unsupported("layout.cp", fmt::format("cp = {} with unfused attention is", l.cp),
                         "use 1, or attention flash");
  }
  if (!findings.trusts({"layout.schedule"})) return;
  const Schedule& schedule = rules_of(l.schedule);
  if (schedule.from_file) check_file(s, findings);
  if (!feeds_both_ends(l)) return;
  // DualPipe's own example reduces the gradients of both copies and updates each.
  if (findings.trusts({"layout.zero"}) && l.zero > 1) {
    findings.unsupported("layout.zero",
                         fmt::format("zero {} under schedule {} is", l.zero, schedule.name),
                         "zero 0 or 1");
  }
  if (findings.trusts({"layout.shard_group"}) && l.shard_group > 0) {
    findings.unsupported("layout.shard_group",
                         fmt::format("states in groups under schedule {} are", schedule.name),
                         "leave it out: both copies share one set of states");
  }
}

// The head of a pipeline that comes back reads the table of another chunk's unit.
void check_sharding(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "layout.zero", "layout.pp", "layout.schedule",
                        "layout.virtual_stages", "training.framework", "training.mode"})) {
    return;
  }
  const Layout& l = s.layout;
  const bool by_unit = s.rules.gradients_by_unit || l.zero == 3;
  if (by_unit && l.pp > 1 && s.model.tied_embeddings && ends_meet(l)) {
    findings.unsupported("layout.schedule",
                         fmt::format("a tied table of sharded parameters under schedule {} is",
                                     rules_of(l.schedule).name),
                         "a schedule that ends on the last stage, or zero 2 or less of another "
                         "framework than fsdp");
  }
}

void check_memory_saving(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  for (const auto& [key, fraction] : {std::pair("optimizer", l.offload.optimizer),
                                      std::pair("parameters", l.offload.parameters)}) {
    const bool whole = s.training.optimizer == Optimizer::kAdamW ||
                       s.training.optimizer == Optimizer::kSgd ||
                       s.training.optimizer == Optimizer::kMuon;  // check_offload() tells
    if (fraction == 0 || whole) continue;
    findings.unsupported(fmt::format("layout.offload.{}", key),
                         fmt::format("offloading {} is", name_of(s.training.optimizer)),
                         "use 0, or optimizer adamw or sgd");
  }
  if (l.offload.activations > 0 && l.overlap.ep && findings.trusts({"layout.overlap.ep"})) {
    findings.unsupported("layout.offload.activations", "offloading while passes alternate is",
                         "use 0, or overlap.ep false");
  }
}

// The head's backward is cut in two there, and its weight gradient waits for the last one.
void check_deferred_head(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (l.defer_head_wgrad == 0 ||
      !findings.trusts({"layout.defer_head_wgrad", "layout.overlap.ep", "layout.zero", "model"})) {
    return;
  }
  const char* beside = nullptr;
  if (l.zero > 1) beside = "zero 2 or 3";
  if (l.overlap.ep) beside = "overlap.ep";
  if (s.model.mtp_layers > 0) beside = "multi-token prediction";
  if (beside == nullptr) return;
  findings.unsupported("layout.defer_head_wgrad",
                       fmt::format("deferring weight gradients of the head with {} is", beside),
                       "use 0");
}

// The states of modules apart cross one boundary, from the chunk before the last to the last.
void check_modules_apart(const Scenario& s, Findings& findings) {
  constexpr const char* kPath = "layout.mtp_apart";
  const Layout& l = s.layout;
  if (!l.mtp_apart || !findings.trusts({kPath, "layout.pp", "layout.schedule", "layout.zero",
                                        "layout.virtual_stages", "training.framework"})) {
    return;
  }
  const char* beside = nullptr;
  if (ends_meet(l)) beside = "a pipeline that comes back to its first stage";
  if (s.rules.gradients_by_unit || l.zero > 1) beside = "sharded gradients";
  if (l.overlap.ep) beside = "overlap.ep";
  if (beside == nullptr) return;
  findings.unsupported(
      kPath, fmt::format("prediction modules in a chunk of their own with {} are", beside),
      "false");
}

// Its gradient of the table is made beside what flows back, part by part.
void check_loss_chunks(const Scenario& s, Findings& findings) {
  constexpr const char* kPath = "training.loss_chunks";
  if (s.training.loss_chunks == 1 ||
      !findings.trusts({kPath, "layout.defer_head_wgrad", "layout.schedule", "layout.pp"})) {
    return;
  }
  const std::int64_t tokens =
      s.layout.micro_batch * s.training.sequence_length / std::max<std::int64_t>(1, s.layout.cp);
  if (s.training.loss_chunks > tokens &&
      findings.trusts({"layout.micro_batch", "layout.cp", "training.sequence_length"})) {
    findings.illegal(kPath, fmt::format("{} parts of {} tokens", s.training.loss_chunks, tokens),
                     fmt::format("at most {}", tokens));
  }
  if (s.layout.defer_head_wgrad > 0) {
    findings.unsupported(kPath, "a loss in parts with layout.defer_head_wgrad is", "1");
  } else if (splits_backward(s.layout)) {
    findings.unsupported(kPath,
                         fmt::format("a loss in parts under schedule {}, which makes weight "
                                     "gradients apart, is",
                                     rules_of(s.layout.schedule).name),
                         "1");
  }
}

// torchtitan has fused attention alone.
void check_recomputed_operations(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"layout.recompute", "training.attention"})) return;
  if (!s.layout.recompute.modules.has(RecomputedModule::kOperations)) return;
  if (s.training.attention != AttentionKernel::kUnfused) return;
  findings.unsupported("layout.recompute.modules",
                       "recomputing torchtitan_op with unfused attention is", "mode full, or none");
}

}  // namespace

void check_support(const Scenario& scenario, Findings& findings) {
  check_model(scenario, findings);
  check_adapters(scenario, findings);
  check_experts(scenario, findings);
  check_parallelism(scenario, findings);
  check_sharding(scenario, findings);
  check_memory_saving(scenario, findings);
  check_modules_apart(scenario, findings);
  check_loss_chunks(scenario, findings);
  check_deferred_head(scenario, findings);
  check_recomputed_operations(scenario, findings);
}

std::string unsupported_in(const Model& model) {
  return fmt::format("{}", fmt::join(unsupported_parts(model), ", "));
}

}  // namespace stepcast
