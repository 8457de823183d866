// SPDX-License-Identifier: Apache-2.0
// Advice for tests, from the text of a scenario file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/json_tree.h"
#include "layout/data_folders.h"
#include "plan/advise/advise.h"
#include "plan/planning.h"

namespace stepcast {

inline SearchOptions on_threads(int threads) {
  SearchOptions out;
  out.threads = threads;
  return out;
}

inline Result<Advice> advice_for(const std::string& text, std::optional<double> tokens_per_s = {},
                                 double margin = 0, const SearchOptions& search = on_threads(2)) {
  static const DataFolders folders = source_folders();
  const PriceList prices{{.cluster = "dgx-h100", .dollars_per_gpu_hour = 3}};
  const SortedJson scenario = SortedJson::parse(text);
  auto document = JsonDocument::from(scenario, "test");
  const auto planner = Planner::make(*document, folders);
  if (!planner) return failure(planner.error());
  const Scenario& base = (*planner)->space().base();
  return advise(
      {scenario, base, "test", folders, prices, demands_of(base, margin, tokens_per_s), search});
}

inline Advice expect_advice(const std::string& text, std::optional<double> tokens_per_s = {},
                            double margin = 0, const SearchOptions& search = on_threads(2)) {
  auto advice = advice_for(text, tokens_per_s, margin, search);
  if (!advice) {
    ADD_FAILURE() << text << "\n" << to_string(advice.error());
    return {};
  }
  return std::move(*advice);
}

inline const RungResult& rung_of(const Advice& advice, const std::string& id) {
  const auto found =
      std::ranges::find_if(advice.rungs, [&](const RungResult& one) { return one.rung->id == id; });
  if (found != advice.rungs.end()) return *found;
  ADD_FAILURE() << "no rung " << id;
  static const RungResult none;
  return none;
}

inline std::string advised(const Advice& advice) {
  return advice.advised ? advice.rungs[*advice.advised].rung->id : "none";
}

}  // namespace stepcast
