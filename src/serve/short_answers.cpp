// SPDX-License-Identifier: Apache-2.0
#include "serve/short_answers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace stepcast {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kRecordedRuns = 3;
constexpr std::size_t kFewEntries = 8;

// Long parts of a forecast that answer other questions than how long, how large, how sure.
constexpr std::array kLongParts = {"rank_classes", "critical_path", "resolved", "explain",
                                   "simulated_tasks"};

void cut_list(ordered_json& object, const char* key, std::size_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return;
  while (found->size() > most) found->erase(found->size() - 1);
}

void shorten(ordered_json& prediction) {
  for (const char* key : kLongParts) prediction.erase(key);
  cut_list(prediction, "recorded_runs", kRecordedRuns);
}

}  // namespace

ordered_json short_prediction(const api::Prediction& prediction) {
  ordered_json out = ordered_json::parse(prediction.json());
  shorten(out);
  return out;
}

ordered_json short_plan(const api::Plan& plan, std::size_t places) {
  ordered_json out = ordered_json::parse(plan.json());
  cut_list(out, "plans", places);
  cut_list(out, "rejected", 1);
  for (std::size_t i = 0; i < out["plans"].size(); ++i) {
    ordered_json& place = out["plans"][i];
    shorten(place["prediction"]);
  }
  return out;
}

ordered_json short_comparison(const api::Comparison& comparison) {
  ordered_json out = ordered_json::parse(comparison.json());
  for (ordered_json& point : out["plans"]) {
    if (point.contains("prediction")) shorten(point["prediction"]);
  }
  return out;
}

ordered_json short_check(const api::CheckOutcome& outcome, std::size_t cases) {
  ordered_json out = ordered_json::parse(outcome.json());
  std::vector<ordered_json> all(out["cases"].begin(), out["cases"].end());
  const auto error_of = [](const ordered_json& one) {
    return std::abs(one["error"].value("step_time", 0.0));
  };
  std::stable_sort(all.begin(), all.end(), [&](const ordered_json& a, const ordered_json& b) {
    return error_of(a) > error_of(b);
  });
  if (all.size() > cases) all.resize(cases);
  out.erase("cases");
  out["largest_errors"] = all;
  return out;
}

ordered_json short_list(const std::string& listing) {
  const ordered_json entries = ordered_json::parse(listing);
  if (entries.size() <= kFewEntries) return entries;
  ordered_json names = ordered_json::array();
  for (const ordered_json& entry : entries) {
    names.push_back(entry.contains("name") ? entry["name"] : entry["key"]);
  }
  return {{"names", names}, {"more", "a filter that leaves few entries shows all of each"}};
}

}  // namespace stepcast
