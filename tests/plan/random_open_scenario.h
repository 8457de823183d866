// SPDX-License-Identifier: Apache-2.0
// Random scenarios whose layout is open.
#pragma once

#include <fmt/format.h>

#include <string>

#include "random_choice.h"

namespace stepcast::testing {

// Models of both forms, tied and untied, with layers that stages do not divide; nodes on a switch,
// on PCIe, and partly used; all frameworks and kinds of clipping.
inline std::string random_scenario(SeededRandom& random) {
  const std::string model = one_of<std::string>({"gpt3-1.3b", "llama-3.2-1b", "gpt2", "gpt3-6.7b",
                                                 "llama-2-7b", "megatron-3.6b", "qwen2.5-3b"},
                                                random);
  const std::string cluster = one_of<std::string>(
      {R"({"base":"dgx-a100-80g","nodes":1})", R"({"base":"dgx-a100-80g","nodes":4})",
       R"({"base":"dgx-h100","nodes":2})", R"({"base":"pcie-4090-8","nodes":1})",
       R"({"base":"dgx-a100-80g","gpus":12})",
       R"({"base":"dgx-h100","nodes":2,"nics_per_node":1})"},
      random);
  const std::string framework =
      one_of<std::string>({"", R"("framework":"megatron",)", R"("framework":"deepspeed",)",
                           R"("framework":"fsdp",)", R"("framework":"native",)"},
                          random);
  const std::string clip =
      one_of<std::string>({"", R"("grad_clip":"none",)", R"("no_sync":true,)"}, random);
  const std::int64_t batch = one_of<std::int64_t>({24, 48, 64}, random);
  const std::int64_t tokens = one_of<std::int64_t>({256, 1024}, random);
  return fmt::format(
      R"({{"stepcast":1,"model":"{}","cluster":{},"training":{{{}{}"global_batch":{},)"
      R"("sequence_length":{}}}}})",
      model, cluster, framework, clip, batch, tokens);
}

}  // namespace stepcast::testing
