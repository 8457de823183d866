// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "program/program.h"
#include "validate/documents.h"

namespace stepcast::fuzz {

// The rank is one of two stages, which has more than one kind of instruction.
void read_rank_results(std::string_view text) {
  static const Scenario scenario = [] {
    const auto document = JsonDocument::parse(
        R"({"stepcast": 1, "model": "gpt2", "cluster": {"base": "dgx-h100", "gpus": 2},
            "training": {"global_batch": 2}, "layout": {"pp": 2}})",
        "");
    return *read_scenario(**document, data_folders());
  }();
  static const Program program = lower(scenario);
  static const RankGrid grid(scenario.layout);
  with_document(text,
                [](JsonDocument& document) { read_rank_file(document, RankId(1), program, grid); });
}

}  // namespace stepcast::fuzz
