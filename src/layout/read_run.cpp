// SPDX-License-Identifier: Apache-2.0
#include "layout/scenario_input.h"

namespace stepcast {

void check_run(const JsonValue& value) {
  constexpr double kMaxTokens = 1e18;
  constexpr double kMaxDollars = 1e15;
  ObjectReader object(value);
  object.number("tokens", 1, kMaxTokens);
  object.number("price_per_gpu_hour", 0, kMaxDollars);
  object.seconds("deadline");
  object.number("budget", 0, kMaxDollars);
  object.number("failures_per_node_day", 0, 1e6);
  if (const auto checkpoint = object.value("checkpoint")) {
    ObjectReader inner(*checkpoint);
    inner.bytes("bytes");
    inner.rate("bandwidth");
    inner.finish();
  }
  object.seconds("restart");
  object.finish();
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
  object.finish();
  return plan;
}

}  // namespace stepcast
