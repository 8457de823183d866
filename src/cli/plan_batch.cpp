// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_batch.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "core/json.h"
#include "core/json_tree.h"
#include "economics/batch_notes.h"
#include "layout/scenario_input.h"
#include "model/model.h"
#include "plan/space.h"

namespace stepcast::cli {

std::optional<std::string> propose_batch(const DataFolders& folders, SortedJson& scenario) {
  if (scenario.contains("training") && scenario["training"].contains("global_batch")) return {};
  SortedJson asked = scenario;
  asked["training"]["global_batch"] = 1;
  // Searches across clusters name these apart; model and run are the same on each.
  if (!asked.contains("cluster")) asked["cluster"] = "dgx-h100";
  const auto document = JsonDocument::from(asked, "");
  const auto open = read_open_scenario(*document, folders, open_paths);
  if (!open || !open->scenario.run || !open->scenario.run->tokens) return {};
  const double parameters = static_cast<double>(count_parameters(open->scenario.model).active);
  const double tokens = *open->scenario.run->tokens;
  const auto length = static_cast<double>(open->scenario.training.sequence_length);
  const double wanted = proposed_batch_tokens(parameters, tokens);
  // Degrees are powers of two, and divide a batch that is one.
  const double sequences = std::exp2(std::round(std::log2(std::max(1.0, wanted / length))));
  scenario["training"]["global_batch"] = static_cast<std::int64_t>(sequences);
  return fmt::format(
      "note: no --global-batch: {:.0f} sequences of {:.0f} tokens, {:.3g} M in all, as the power "
      "of two nearest to 0.292 C^0.3271 tokens for the C = {:.2g} FLOPs of the run (DeepSeek LLM, "
      "arXiv 2401.02954)",
      sequences, length, sequences * length / 1e6, 6 * parameters * tokens);
}

}  // namespace stepcast::cli
