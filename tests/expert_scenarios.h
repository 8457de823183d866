// SPDX-License-Identifier: Apache-2.0
// Scenarios with experts for tests.
#pragma once

#include <fmt/format.h>

#include "scenario_from.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::testing {

// A model of the Llama form with experts in every layer, on DGX H100 nodes.
struct ExpertCase {
  int layers = 2, hidden = 1024, heads = 16, vocab = 2048, sequence = 1024;
  int experts = 16, top_k = 4, ffn = 512, shared_ffn = 0, dense_layers = 0;
  double capacity_factor = 0, imbalance = 1;
  std::string dispatcher = "alltoall";
  std::string more_model = "", more_moe = "";  // more members, with a leading comma
  int tp = 1, pp = 1, dp = 8, ep = 1, etp = 1, micro_batch = 1, global_batch = 16, zero = 1;
  std::string recompute = R"("none")", schedule = "1f1b", cluster = "dgx-h100";
  int virtual_stages = 1;
  std::string more_layout = "", more_training = "";
};

inline std::string text_of(const ExpertCase& c) {
  const std::string model = fmt::format(
      R"({{"layers":{},"hidden":{},"heads":{},"kv_heads":{},"ffn":{},"vocab":{},"mlp":"swiglu",)"
      R"("norm":"rmsnorm","position":"rope","biases":false,"vocab_multiple":1,"moe":{{)"
      R"("experts":{},"top_k":{},"ffn":{},"shared_ffn":{},"dense_layers":{},)"
      R"("capacity_factor":{},"imbalance":{},"dispatcher":"{}"{}}}{}}})",
      c.layers, c.hidden, c.heads, c.heads, 4 * c.hidden, c.vocab, c.experts, c.top_k, c.ffn,
      c.shared_ffn, c.dense_layers, c.capacity_factor, c.imbalance, c.dispatcher, c.more_moe,
      c.more_model);
  const std::string layout = fmt::format(
      R"({{"tp":{},"pp":{},"dp":{},"ep":{},"etp":{},"micro_batch":{},"zero":{},"recompute":{},)"
      R"("schedule":"{}","virtual_stages":{}{}}})",
      c.tp, c.pp, c.dp, c.ep, c.etp, c.micro_batch, c.zero, c.recompute, c.schedule,
      c.virtual_stages, c.more_layout);
  return fmt::format(
      R"({{"stepcast":1,"model":{},"cluster":{{"base":"{}","gpus":{}}},"training":{{)"
      R"("global_batch":{},"sequence_length":{},"framework":"megatron"{}}},"layout":{}}})",
      model, c.cluster, c.tp * c.pp * c.dp, c.global_batch, c.sequence, c.more_training, layout);
}

inline Scenario with_experts(const ExpertCase& c) { return scenario_from(text_of(c)); }

}  // namespace stepcast::testing
