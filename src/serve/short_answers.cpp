// SPDX-License-Identifier: Apache-2.0
#include "serve/short_answers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/json_tree.h"

namespace stepcast {
namespace {

constexpr std::size_t kRecordedRuns = 3;
constexpr std::size_t kFewEntries = 8;

// Long parts of a forecast that answer other questions than how long, how large, how sure.
constexpr std::array kLongParts = {"rank_classes", "critical_path", "resolved", "explain",
                                   "simulated_tasks"};

void cut_list(Json& object, const char* key, std::size_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return;
  while (found->size() > most) found->pop_back();
}

void shorten(Json& prediction) {
  for (const char* key : kLongParts) prediction.erase(key);
  cut_list(prediction, "recorded_runs", kRecordedRuns);
}

}  // namespace

Json short_prediction(const api::Prediction& prediction) {
  Json out = Json::parse(prediction.json());
  shorten(out);
  return out;
}

Json short_plan(const api::Plan& plan, std::size_t places) {
  Json out = Json::parse(plan.json());
  cut_list(out, "plans", places);
  cut_list(out, "rejected", 1);
  for (std::size_t i = 0; i < out["plans"].size(); ++i) {
    Json& place = out["plans"][i];
    shorten(place["prediction"]);
  }
  return out;
}

Json short_comparison(const api::Comparison& comparison) {
  Json out = Json::parse(comparison.json());
  for (Json& point : out["plans"]) {
    if (point.contains("prediction")) shorten(point["prediction"]);
  }
  return out;
}

Json short_check(const api::CheckOutcome& outcome, std::size_t cases) {
  Json out = Json::parse(outcome.json());
  std::vector<Json> all(out["cases"].begin(), out["cases"].end());
  const auto error_of = [](const Json& one) {
    return std::abs(one["error"].value("step_time", 0.0));
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Json& a, const Json& b) { return error_of(a) > error_of(b); });
  if (all.size() > cases) all.resize(cases);
  out.erase("cases");
  out["largest_errors"] = all;
  return out;
}

Json short_list(const std::string& listing) {
  const Json entries = Json::parse(listing);
  if (entries.size() <= kFewEntries) return entries;
  Json names = Json::array();
  for (const Json& entry : entries) {
    names.push_back(*entry.begin());  // every list has its entries' names first
  }
  return {{"names", names}, {"more", "a filter that leaves few entries shows all of each"}};
}

}  // namespace stepcast
