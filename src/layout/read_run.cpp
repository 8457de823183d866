// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/write_rows.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

constexpr double kMaxPerDay = 1e6;
// Once in the age of the universe. What is rarer is never, and its square is below any number.
constexpr double kLeastPerDay = 1e-13;

// Tokens as people count them for fine-tuning: examples, passes through them, tokens of each.
std::optional<double> tokens_of_examples(ObjectReader& object) {
  const auto examples = object.number("examples", 1, kMaxTokens);
  const auto epochs = object.number("epochs", 1e-6, kMaxTokens);
  const auto each = object.number("tokens_per_example", 1, kMaxTokens);
  if (!examples) {
    for (const auto& [key, stated] :
         {std::pair("epochs", epochs), std::pair("tokens_per_example", each)}) {
      if (stated) {
        object.fail(key, ErrorCode::kMissingKey, "says nothing without the number of examples",
                    "--examples 50k, or run.examples");
      }
    }
    return std::nullopt;
  }
  if (object.has("tokens")) {
    object.fail("examples", ErrorCode::kIllegal, "tokens and examples both say how long the run is",
                "one of the two");
  }
  if (!each) {
    object.fail("tokens_per_example", ErrorCode::kMissingKey, "examples need their mean length",
                "--tokens-per-example 700; the sequence length where each is padded to it");
    return std::nullopt;
  }
  return *examples * epochs.value_or(1) * *each;
}

}  // namespace

bool read_json(const JsonValue& value, PerDay& out) {
  const auto rate = value.number(0, kMaxPerDay);
  if (!rate) return false;
  if (*rate == 0 || *rate >= kLeastPerDay) {
    out.rate = *rate;
    return true;
  }
  value.fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *rate),
             fmt::format("0, or {} to {}", kLeastPerDay, kMaxPerDay));
  return false;
}
Json written_json(const PerDay& per_day) { return per_day.rate; }

RunSettings read_run(const JsonValue& value) {
  ObjectReader object(value);
  RunSettings out;
  const auto of_examples = tokens_of_examples(object);
  read_keys(object, out);
  if (of_examples) out.tokens = std::max(1.0, *of_examples);
  for (const auto& [limit, stated] : {std::pair("deadline", out.deadline.has_value()),
                                      std::pair("budget", out.budget.has_value())}) {
    if (out.tokens || !stated) continue;
    object.fail(limit, ErrorCode::kMissingKey,
                fmt::format("a {} needs the tokens of the run", limit),
                "--tokens 2T, or run.tokens; --examples 50k --tokens-per-example 700");
  }
  object.finish();
  return out;
}

SortedJson to_json(const RunSettings& run) { return json_of(run); }

PlanInput read_plan(const JsonValue& value) {
  ObjectReader object(value);
  PlanInput plan;
  const std::vector<std::string> objectives = {"step_time", "cost", "goodput"};
  if (const auto objective = object.choice("objective", objectives)) {
    plan.objective = objectives[*objective];
  }
  if (const auto clusters = object.value("clusters")) {
    for (const JsonValue& cluster : clusters->items()) {
      if (!cluster.is_object()) cluster.text();  // a cluster is a name or an object
    }
  }
  plan.max_gpus = object.integer("max_gpus", 1);
  plan.memory_margin = object.number("memory_margin", 0, 1);
  plan.risk = object.number("risk", kLeastRisk, kMostRisk);
  plan.min_tokens_per_s = object.number("min_tokens_per_s", 0, kMaxTokens);
  object.finish();
  return plan;
}

Rows CheckpointSettings::fields() {
  using F = CheckpointSettings;
  static constexpr Row all[] = {row<&F::bytes>("bytes").with_unit(),
                                row<&F::bandwidth>("bandwidth").with_unit().positive(),
                                row<&F::interval>("interval").with_unit().positive()};
  return rows_of<F>(all);
}

Rows StragglerSettings::fields() {
  using F = StragglerSettings;
  static constexpr Row all[] = {row<&F::per_node_day>("per_node_day").required(),
                                row<&F::slowdown>("slowdown").required().within(0, 1e3),
                                row<&F::detection>("detection").required().with_unit()};
  return rows_of<F>(all);
}

Rows CorruptionSettings::fields() {
  using F = CorruptionSettings;
  static constexpr Row all[] = {row<&F::per_node_day>("per_node_day").required(),
                                row<&F::check>("check").required().with_unit().positive(),
                                row<&F::check_time>("check_time").with_unit()};
  return rows_of<F>(all);
}

Rows PreemptionSettings::fields() {
  using F = PreemptionSettings;
  static constexpr Row all[] = {row<&F::per_node_day>("per_node_day").required(),
                                row<&F::notice>("notice").with_unit()};
  return rows_of<F>(all);
}

Rows LongContextSettings::fields() {
  using F = LongContextSettings;
  static constexpr Row all[] = {row<&F::tokens>("tokens").required().within(1, kMaxTokens),
                                row<&F::token_cost>("token_cost").within(0.01, 1e3)};
  return rows_of<F>(all);
}

Rows BesideSettings::fields() {
  using F = BesideSettings;
  constexpr double kMostTimes = 1e3;
  static constexpr Row all[] = {row<&F::bring_up>("bring_up").with_unit(),
                                row<&F::evaluation>("evaluation").within(0, kMostTimes),
                                row<&F::thrown_away>("thrown_away").within(0, kMostTimes),
                                row<&F::long_context>("long_context")};
  return rows_of<F>(all);
}

Rows RunSettings::fields() {
  using F = RunSettings;
  constexpr double kMaxDollars = 1e15, kMaxNodes = 1 << 20;
  static constexpr Row all[] = {
      row<&F::tokens>("tokens").within(1, kMaxTokens),
      row<&F::price_per_gpu_hour>("price_per_gpu_hour").within(0, kMaxDollars),
      row<&F::rental>("rental"),
      row<&F::rented_together>("rented_together").within(1, kMaxNodes),
      row<&F::deadline>("deadline").with_unit(),
      row<&F::budget>("budget").within(0, kMaxDollars),
      row<&F::failures_per_node_day>("failures_per_node_day"),
      row<&F::failures_per_day>("failures_per_day"),
      row<&F::checkpoint>("checkpoint").unless_usual(),
      row<&F::restart>("restart").with_unit(),
      row<&F::spare_nodes>("spare_nodes").within(0, kMaxNodes),
      row<&F::repair>("repair").with_unit(),
      row<&F::elastic>("elastic").unless_usual(),
      row<&F::stragglers>("stragglers"),
      row<&F::preemption>("preemption"),
      row<&F::silent_corruption>("silent_corruption"),
      row<&F::beside>("beside"),
      row<&F::pue>("pue").within(1, 10)};
  return rows_of<F>(all);
}

}  // namespace stepcast
