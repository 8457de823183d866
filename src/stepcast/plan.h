// SPDX-License-Identifier: Apache-2.0
// The best layouts of a scenario: every layout key that it leaves out is searched.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto scenario = stepcast::api::Scenario::parse(*data, R"({
//     "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
//     "training": {"global_batch": 64, "sequence_length": 4096}})");
//   if (!scenario) return scenario.error();
//   stepcast::api::PlanOptions options;
//   options.replays = 16;
//   const auto plan = stepcast::api::plan(*scenario, options);
//   if (!plan) return plan.error();
//   if (plan->places() == 0) std::abort();  // nothing fits
//   std::puts(plan->layout(0).c_str());     // "tp 1 · pp 1 · ..."
//   const auto best = stepcast::api::predict(plan->scenario(0));
//   if (!best) return best.error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/prediction.h"

namespace stepcast::api {

struct PlanProgress {
  Seconds elapsed;
  std::int64_t bounded = 0, replayed = 0;  // layouts
  Seconds best;                            // step time of the best so far; 0: none
  Seconds bound;                           // nothing that is left is faster; 0: not known yet
  std::string best_scenario;               // the best so far as JSON; empty: none
};

struct PlanOptions {
  std::int64_t top = 10;       // places that are to be certain; 1 to 1000
  std::int64_t replays = 256;  // forecasts at most, unless `prove`
  bool prove = false;          // search on until the places are certain
  int front = 0;               // points of the front of time and memory, at most; to 100
  Seconds time_limit;          // 0: none
  std::string objective = {};  // "step_time", "cost" or "goodput"; empty: the scenario's
  double memory_margin = -1;   // fraction of memory left free; negative: the scenario's, else 0.05
  double risk = 0;          // the quantile that places are ranked by; 0: the scenario's, else 0.5
  std::string prices = {};  // a file of prices that goes before those that ship
  // Layouts to say of why they are not the first place: {{{"tp", "4"}, {"pp", "8"}}}. The answers
  // stand in the outputs.
  std::vector<std::map<std::string, std::string>> why_not = {};
  int threads = 1;  // changes no result
  // Called between rounds, on the calling thread.
  std::function<void(const PlanProgress&)> progress = {};
  // Asked often, on any thread. A search that is stopped still answers with what it found.
  std::function<bool()> stop = {};
};

class Plan {
 public:
  std::size_t places() const;                   // layouts that fit, the best first
  bool proven() const;                          // the first `top` places are certain
  std::string layout(std::size_t place) const;  // in words; below places()
  Seconds step_time(std::size_t place) const;
  Scenario scenario(std::size_t place) const;  // with this layout

  // Every figure, in the format of docs/plan.md.
  std::string json() const;
  std::string csv() const;
  std::string text() const;
  std::string markdown() const;
  Result<std::string> html() const;  // Errors: those of the first place's forecast

  struct Made;  // only this library knows it
  explicit Plan(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

 private:
  std::shared_ptr<const Made> made_;
};

// Errors: what is wrong with the scenario, options out of range, or the rules that leave no layout.
// That nothing fits in memory is an answer: places() is 0.
Result<Plan> plan(const Scenario& scenario, const PlanOptions& options = {});

}  // namespace stepcast::api
