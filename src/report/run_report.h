// SPDX-License-Identifier: Apache-2.0
// The forecast of a run beside that of its step: a section of the table, an object of the JSON
// (docs/economics.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_fwd.h"
#include "economics/run_forecast.h"
#include "report/document_form.h"

namespace stepcast {

// Says what a run takes, costs and meets, a sentence each.
std::vector<std::string> run_lines(const RunTerms& terms, const RunForecast& run);
// Wall time goes into these: key, words and share, those first that train.
struct WallShare {
  const char* key;
  const char* label;
  double share;
};
std::vector<WallShare> wall_share_list(const WallShares& shares);

Written run_table(const RunTerms& terms, const RunForecast& run, Form form);

// The key `economics`. Whatever is not applicable or not finite is left out.
Json run_object(const RunTerms& terms, const RunForecast& run);

// The numbers of that object as columns of CSV: "run_goodput", "run_checkpoint_interval_s".
std::vector<std::pair<std::string, double>> run_columns(const RunTerms& terms,
                                                        const RunForecast& run);

// Plays the process event by event with random numbers (--explain).
Written simulation_text(const RunTerms& terms, const RunForecast& run, std::uint64_t seed);

}  // namespace stepcast
