// SPDX-License-Identifier: Apache-2.0
// The text of a scenario file, for tests.
#pragma once

#include <string>

namespace stepcast::testing {

// A GPT-form model of the given shape, unpadded, on DGX A100 nodes.
struct GptCase {
  int layers = 4, hidden = 512, heads = 8, vocab = 1024, sequence = 256;
  int global_batch = 8, micro_batch = 1, tp = 1, pp = 1, dp = 1, virtual_stages = 1, zero = 0;
  std::string schedule = "1f1b", recompute = "none", attention = "unfused", precision = "bf16";
  std::string framework = "megatron";
  bool sequence_parallel = false, tied = true;
  double dropout = 0.1;
  std::string cluster = R"("base": "dgx-a100-80g")";
  std::string extra_layout, extra_training;  // more members, with a leading comma
};

inline std::string text_of(const GptCase& c) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  const auto n = [](auto value) { return std::to_string(value); };
  return std::string(R"({"stepcast": 1, "model": {"layers": )") + n(c.layers) + R"(, "hidden": )" +
         n(c.hidden) + R"(, "heads": )" + n(c.heads) + R"(, "vocab": )" + n(c.vocab) +
         R"(, "max_positions": )" + n(c.sequence) + R"(, "mlp": "gelu", "norm": "layernorm", )" +
         R"("position": "learned", "biases": true, "vocab_multiple": 1, "tied_embeddings": )" +
         flag(c.tied) + R"(, "dropout": )" + n(c.dropout) + R"(}, "cluster": {)" + c.cluster +
         R"(, "gpus": )" + n(c.tp * c.pp * c.dp) + R"(}, "training": {"global_batch": )" +
         n(c.global_batch) + R"(, "sequence_length": )" + n(c.sequence) + R"(, "precision": ")" +
         c.precision + R"(", "attention": ")" + c.attention + R"(", "framework": ")" + c.framework +
         R"(")" + c.extra_training + R"(}, "layout": {"tp": )" + n(c.tp) + R"(, "pp": )" + n(c.pp) +
         R"(, "dp": )" + n(c.dp) + R"(, "micro_batch": )" + n(c.micro_batch) +
         R"(, "schedule": ")" + c.schedule + R"(", "virtual_stages": )" + n(c.virtual_stages) +
         R"(, "zero": )" + n(c.zero) + R"(, "sequence_parallel": )" + flag(c.sequence_parallel) +
         R"(, "recompute": ")" + c.recompute + R"(")" + c.extra_layout + "}}";
}

// The CPU executor runs this, on this machine.
inline GptCase small_local() {
  GptCase c;
  c.cluster = R"("base": "local")";
  c.attention = "flash";
  c.precision = "fp32";
  c.framework = "native";
  c.dropout = 0;
  return c;
}

// A step of this smaller model takes no time to speak of.
inline GptCase tiny_local() {
  GptCase c = small_local();
  c.layers = 2;
  c.hidden = 32;
  c.heads = 4;
  c.vocab = 64;
  c.sequence = 16;
  return c;
}

}  // namespace stepcast::testing
