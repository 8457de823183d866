// SPDX-License-Identifier: Apache-2.0
// Causes come before their effects, and no step is shorter than physics has it.
#include <fmt/format.h>

#include <algorithm>

#include "generate/property.h"
#include "layout/data_folders.h"
#include "least_step.h"

namespace stepcast::generate {
namespace {

constexpr std::int64_t kMostUnfolded = 16;

// predict() asserts it of the program and of every replay (PredictOptions::check).
Verdict causes_come_first(Case& c) {
  std::vector<PredictOptions> ways = {{.check = true}, {.contention = false, .check = true}};
  if (c.scenario().cluster.gpus() <= kMostUnfolded) {
    ways.push_back({.fold = false, .check = true});
    ways.push_back({.expand = true, .check = true});
  }
  ways.push_back({.alone = RankId(0), .check = true});
  for (const PredictOptions& way : ways) {
    const auto forecast = predict(c.scenario(), source_folders(), way);
    if (!forecast) return violated(to_string(forecast.error()));
  }
  return holds();
}

// Times are rounded to picoseconds, task by task.
constexpr double kRounded = 1e-6;

Verdict step_is_no_shorter_than_its_parts(Case& c) {
  // Ranks on processors share their cores, and give way to each other.
  if (c.scenario().cluster.spec.accelerator.is_cpu()) return does_not_apply();
  const auto pricing = make_pricing(c.scenario(), source_folders());
  if (!pricing) return violated(to_string(pricing.error()));
  const testing::LeastStep least = testing::least_step(c.scenario(), **pricing);
  const double step = c.forecast()->step_time.value();
  if (step >= least.time.value() * (1 - kRounded)) return holds();
  return violated(fmt::format("{} s, and {} take {} s one after the other", step, least.why,
                              least.time.value()));
}

constexpr double kPipelined = 0.15;  // of a step

Verdict step_is_no_shorter_than_its_busiest_link(Case& c) {
  Seconds most;
  for (const LinkTime& link : c.forecast()->link_use) most = std::max(most, link.all());
  if (most.value() == 0) return does_not_apply();
  const double step = c.forecast()->step_time.value();
  if (step >= most.value() * (1 - kRounded)) return holds();
  // A collective that is pipelined with a product is no load of the step, and meets nobody else's
  // traffic (docs/design/005-macro-activities.md).
  if (c.scenario().layout.overlap.tp && step >= most.value() * (1 - kPipelined)) {
    return {Verdict::kExcepted};
  }
  return violated(fmt::format("{} s, and one link is full for {} s", step, most.value()));
}

}  // namespace

std::vector<Property> causal_properties() {
  return {
      {"causes_come_first", "nothing is used before it exists, or overwritten while it is used",
       causes_come_first, 1, 100},
      {"step_holds_its_parts",
       "a step is no shorter than its kernels, nor than first gradient, reduction and update",
       step_is_no_shorter_than_its_parts, 1, 90},
      {"step_holds_its_links", "a step is no shorter than what goes over the busiest link",
       step_is_no_shorter_than_its_busiest_link, 1, 30},
  };
}

}  // namespace stepcast::generate
