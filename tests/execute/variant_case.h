// SPDX-License-Identifier: Apache-2.0
// Models of the Llama form with layers that are no plain attention and MLP, small enough that a
// step takes no time to speak of, in any layout on this machine.
#pragma once

#include <fmt/format.h>

#include "scenario_from.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::testing {

struct VariantCase {
  std::string model = "";  // more members, with a leading comma
  int kv_heads = 4, layers = 4, vocab = 64, sequence = 32, global_batch = 8;
  int tp = 1, pp = 1, dp = 1, cp = 1, ep = 1, etp = 1, micro_batch = 1, zero = 0;
  std::string framework = "native", training = "", layout = "";  // more members
  bool experts = false;                                          // whether ep and etp are stated
};

inline std::string text_of(const VariantCase& c) {
  const std::string experts =
      c.experts ? fmt::format(R"(,"ep":{},"etp":{})", c.ep, c.etp) : std::string();
  return fmt::format(
      R"({{"stepcast":1,"model":{{"layers":{},"hidden":32,"heads":4,"kv_heads":{},"ffn":48,)"
      R"("vocab":{},"max_positions":{},"mlp":"swiglu","norm":"rmsnorm","position":"rope",)"
      R"("biases":false,"vocab_multiple":1,"dropout":0{}}},"cluster":{{"base":"local",)"
      R"("gpus":{}}},"training":{{"global_batch":{},"sequence_length":{},"precision":"fp32",)"
      R"("framework":"{}"{}}},"layout":{{"tp":{},"pp":{},"dp":{},"cp":{},"micro_batch":{},)"
      R"("zero":{}{}{}}}}})",
      c.layers, c.kv_heads, c.vocab, c.sequence, c.model, c.tp * c.pp * c.dp * c.cp, c.global_batch,
      c.sequence, c.framework, c.training, c.tp, c.pp, c.dp, c.cp, c.micro_batch, c.zero, experts,
      c.layout);
}

inline Scenario variant(const VariantCase& c) { return scenario_from(text_of(c)); }

}  // namespace stepcast::testing
