// SPDX-License-Identifier: Apache-2.0
// The list of what is legal and not modelled yet. An entry goes when its mechanism is lowered.
#include <fmt/format.h>

#include "layout/legality.h"

namespace stepcast {
namespace {

void check_model(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model"})) return;
  const Model& model = s.model;
  if (model.moe) {
    findings.unsupported("model",
                         fmt::format("mixture of experts ({} experts) is", model.moe->experts));
  }
  if (model.mla) findings.unsupported("model", "multi-head latent attention is");
  if (model.mtp_layers > 0) findings.unsupported("model", "multi-token prediction is");
  if (model.embedding_width > 0 && model.embedding_width != model.hidden) {
    findings.unsupported("model", fmt::format("an embedding of width {} projected to {} is",
                                              model.embedding_width, model.hidden));
  }
  if (findings.trusts({"training.sequence_length"}) && model.attention_window > 0 &&
      s.training.sequence_length > model.attention_window) {
    findings.unsupported("model",
                         fmt::format("an attention window of {} below the sequence of {} is",
                                     model.attention_window, s.training.sequence_length),
                         "a sequence inside the window is full attention, which is supported");
  }
}

void check_parallelism(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (findings.trusts({"layout.cp"}) && l.cp > 1) {
    findings.unsupported("layout.cp", fmt::format("cp = {} is", l.cp), "use 1");
  }
  if (s.model.moe && l.ep > 1) {
    findings.unsupported("layout.ep", fmt::format("ep = {} is", l.ep), "use 1");
  }
  if (!findings.trusts({"layout.schedule"})) return;
  switch (l.schedule) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1F1B:
    case ScheduleKind::kInterleaved:
      break;
    default:
      findings.unsupported("layout.schedule",
                           fmt::format("the schedule {}{} is", name_of(l.schedule),
                                       l.schedule_file.empty() ? "" : ":" + l.schedule_file),
                           "gpipe, 1f1b or interleaved");
  }
}

void check_sharding(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"layout.zero", "layout.pp", "training.framework"})) return;
  const Layout& l = s.layout;
  const Framework framework = s.training.framework;
  if (framework == Framework::kMegatron && l.zero >= 2) {
    findings.unsupported("layout.zero", fmt::format("zero {} with framework megatron is", l.zero),
                         "megatron takes 0 or 1; fsdp and deepspeed shard more");
  }
  const bool shards_in_pipeline = l.pp > 1 && (framework == Framework::kFsdp ||
                                               (framework == Framework::kNative && l.zero >= 2));
  if (shards_in_pipeline) {
    findings.unsupported(
        "layout.pp",
        fmt::format("pp = {} with framework {} and zero {} is", l.pp, name_of(framework), l.zero),
        "pp 1, or zero 0 or 1 with another framework");
  }
  if (findings.trusts({"layout.shard_group", "layout.dp", "layout.cp"}) && l.shard_group > 0) {
    findings.unsupported("layout.shard_group",
                         fmt::format("sharding over {} of {} ranks is", l.shard_group, l.dp * l.cp),
                         "all");
  }
}

void check_memory_saving(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  for (const auto& [key, fraction] :
       {std::pair("optimizer", l.offload.optimizer), std::pair("parameters", l.offload.parameters),
        std::pair("activations", l.offload.activations)}) {
    if (fraction > 0) {
      findings.unsupported(fmt::format("layout.offload.{}", key),
                           fmt::format("offloading {} of it is", fraction), "use 0");
    }
  }
  if (!findings.trusts({"layout.recompute"})) return;
  for (const std::string& module : l.recompute.modules) {
    if (module != "core_attention") {
      findings.unsupported("layout.recompute.modules", fmt::format("recomputing {} is", module),
                           "core_attention, or mode full");
    }
  }
}

}  // namespace

void check_fields(const Scenario& s, Findings& findings) {
  if (findings.trusts({"training.precision"}) && s.training.precision == DataType::kFp8) {
    findings.unsupported("training.precision", "fp8 is", "bf16, fp16 or fp32");
  }
}

void check_support(const Scenario& scenario, Findings& findings) {
  check_model(scenario, findings);
  check_parallelism(scenario, findings);
  check_sharding(scenario, findings);
  check_memory_saving(scenario, findings);
}

}  // namespace stepcast
