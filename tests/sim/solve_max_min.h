// SPDX-License-Identifier: Apache-2.0
// A whole system of max-min fairness at once.
#pragma once

#include <span>
#include <vector>

#include "sim/max_min.h"
#include "sim/workload.h"

namespace stepcast::sim {

struct Activity {
  double bound;
  double share;
  std::span<const Use> uses;
};

// Rates of all activities.
inline std::vector<double> solve_max_min(std::span<const Activity> activities,
                                         std::span<const double> capacities) {
  MaxMinSolver solver;
  for (const double capacity : capacities) solver.add_resource(capacity);
  for (const Activity& activity : activities) {
    solver.add_activity(activity.bound, activity.share);
    for (const Use& use : activity.uses) solver.add_use(use.resource.value, use.weight);
  }
  solver.solve();
  std::vector<double> rates(activities.size());
  for (std::size_t a = 0; a < rates.size(); ++a) rates[a] = solver.rate(static_cast<int>(a));
  return rates;
}

}  // namespace stepcast::sim
