// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/json_tree.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

constexpr double kMaxTokens = 1e18;
constexpr double kMaxDollars = 1e15;
constexpr double kMaxPerDay = 1e6;

// Once in the age of the universe. What is rarer is never, and its square is below any number.
constexpr double kLeastPerDay = 1e-13;

// How often a day something happens: never, or a rate that can be reckoned with.
std::optional<double> rate_per_day(ObjectReader& object, const char* key) {
  const auto rate = object.number(key, 0, kMaxPerDay);
  if (!rate || *rate == 0 || *rate >= kLeastPerDay) return rate;
  object.fail(key, ErrorCode::kBadValue, fmt::format("{} is out of range", *rate),
              fmt::format("0, or {} to {}", kLeastPerDay, kMaxPerDay));
  return std::nullopt;
}

CheckpointSettings read_checkpoint(const JsonValue& value) {
  ObjectReader object(value);
  CheckpointSettings out;
  out.bytes = object.bytes("bytes");
  out.bandwidth = object.rate("bandwidth");
  out.interval = object.seconds("interval");
  for (const auto& [key, zero] :
       {std::pair("bandwidth", out.bandwidth && !(out.bandwidth->value() > 0)),
        std::pair("interval", out.interval && !(out.interval->value() > 0))}) {
    if (zero) object.fail(key, ErrorCode::kBadValue, "0 is out of range", "more than 0");
  }
  object.finish();
  return out;
}

StragglerSettings read_stragglers(const JsonValue& value) {
  ObjectReader object(value);
  StragglerSettings out;
  if (object.required("per_node_day")) {
    out.per_node_day = rate_per_day(object, "per_node_day").value_or(0);
  }
  if (object.required("slowdown")) out.slowdown = object.number("slowdown", 0, 1e3).value_or(0);
  if (object.required("detection")) {
    out.detection = object.seconds("detection").value_or(Seconds());
  }
  object.finish();
  return out;
}

PreemptionSettings read_preemption(const JsonValue& value) {
  ObjectReader object(value);
  PreemptionSettings out;
  if (object.required("per_node_day")) {
    out.per_node_day = rate_per_day(object, "per_node_day").value_or(0);
  }
  out.notice = object.seconds("notice").value_or(Seconds());
  object.finish();
  return out;
}

CorruptionSettings read_corruption(const JsonValue& value) {
  ObjectReader object(value);
  CorruptionSettings out;
  if (object.required("per_node_day")) {
    out.per_node_day = rate_per_day(object, "per_node_day").value_or(0);
  }
  if (object.required("check")) out.check = object.seconds("check").value_or(Seconds(1));
  if (!(out.check.value() > 0) && object.has("check")) {
    object.fail("check", ErrorCode::kBadValue, "0 is out of range", "more than 0");
  }
  out.check_time = object.seconds("check_time").value_or(Seconds());
  object.finish();
  return out;
}

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

std::string seconds_text(Seconds time) { return fmt::format("{} s", time.value()); }

}  // namespace

RunSettings read_run(const JsonValue& value) {
  ObjectReader object(value);
  RunSettings out;
  const auto of_examples = tokens_of_examples(object);
  out.tokens = object.number("tokens", 1, kMaxTokens);
  if (of_examples) out.tokens = std::max(1.0, *of_examples);
  out.price_per_gpu_hour = object.number("price_per_gpu_hour", 0, kMaxDollars);
  out.rented_together = object.integer("rented_together", 1, 1 << 20);
  out.deadline = object.seconds("deadline");
  out.budget = object.number("budget", 0, kMaxDollars);
  out.failures_per_node_day = rate_per_day(object, "failures_per_node_day");
  out.failures_per_day = rate_per_day(object, "failures_per_day").value_or(0);
  if (const auto inner = object.value("checkpoint")) out.checkpoint = read_checkpoint(*inner);
  out.restart = object.seconds("restart");
  out.spare_nodes = object.integer("spare_nodes", 0, 1 << 20).value_or(0);
  out.repair = object.seconds("repair").value_or(Seconds());
  out.elastic = object.boolean("elastic").value_or(false);
  if (const auto inner = object.value("stragglers")) out.stragglers = read_stragglers(*inner);
  if (const auto inner = object.value("preemption")) out.preemption = read_preemption(*inner);
  if (const auto inner = object.value("silent_corruption")) {
    out.silent_corruption = read_corruption(*inner);
  }
  out.pue = object.number("pue", 1, 10);
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

SortedJson to_json(const RunSettings& run) {
  SortedJson out = SortedJson::object();
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value) out[key] = *value;
  };
  const auto put_time = [](SortedJson& object, const char* key,
                           const std::optional<Seconds>& value) {
    if (value) object[key] = seconds_text(*value);
  };
  put("tokens", run.tokens);
  put("price_per_gpu_hour", run.price_per_gpu_hour);
  if (run.rented_together) out["rented_together"] = *run.rented_together;
  put_time(out, "deadline", run.deadline);
  put("budget", run.budget);
  put("failures_per_node_day", run.failures_per_node_day);
  out["failures_per_day"] = run.failures_per_day;
  SortedJson checkpoint = SortedJson::object();
  if (run.checkpoint.bytes) {
    checkpoint["bytes"] = fmt::format("{} B", run.checkpoint.bytes->value());
  }
  if (run.checkpoint.bandwidth) {
    checkpoint["bandwidth"] = fmt::format("{} B/s", run.checkpoint.bandwidth->value());
  }
  put_time(checkpoint, "interval", run.checkpoint.interval);
  if (!checkpoint.empty()) out["checkpoint"] = std::move(checkpoint);
  put_time(out, "restart", run.restart);
  out["spare_nodes"] = run.spare_nodes;
  out["repair"] = seconds_text(run.repair);
  if (run.elastic) out["elastic"] = true;
  if (run.stragglers) {
    out["stragglers"] = {{"per_node_day", run.stragglers->per_node_day},
                         {"slowdown", run.stragglers->slowdown},
                         {"detection", seconds_text(run.stragglers->detection)}};
  }
  if (run.preemption) {
    out["preemption"] = {{"per_node_day", run.preemption->per_node_day},
                         {"notice", seconds_text(run.preemption->notice)}};
  }
  if (run.silent_corruption) {
    out["silent_corruption"] = {{"per_node_day", run.silent_corruption->per_node_day},
                                {"check", seconds_text(run.silent_corruption->check)},
                                {"check_time", seconds_text(run.silent_corruption->check_time)}};
  }
  put("pue", run.pue);
  return out;
}

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

}  // namespace stepcast
