// SPDX-License-Identifier: Apache-2.0
// The forecast of a run beside that of its step: a section of the table, an object of the JSON
// (docs/economics.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "economics/run_forecast.h"
#include "report/document_form.h"

namespace stepcast {

Written run_table(const RunTerms& terms, const RunForecast& run, Form form);

// The key `economics`. Whatever is not applicable or not finite is left out.
nlohmann::ordered_json run_object(const RunTerms& terms, const RunForecast& run);

// The numbers of that object as columns of CSV: "run_goodput", "run_checkpoint_interval_s".
std::vector<std::pair<std::string, double>> run_columns(const RunTerms& terms,
                                                        const RunForecast& run);

// The same process played event by event with random numbers (--explain).
Written simulation_text(const RunTerms& terms, const RunForecast& run, std::uint64_t seed);

}  // namespace stepcast
