// SPDX-License-Identifier: Apache-2.0
// Weighted max-min fairness: activities a with rate x_a, bound b_a, share s_a, uses (resource r,
// weight w). Sum over a of w_ar x_a <= C_r for each r, x_a <= b_a; maximise the smallest x_a/s_a,
// then the next smallest, and so on (progressive filling; Bertsekas & Gallager, section 6.5.2).
#pragma once

#include <span>
#include <vector>

#include "sim/workload.h"

namespace stepcast::sim {

struct Activity {
  double bound;
  double share;
  std::span<const Use> uses;
};

// Rates of all activities. A resource without capacity left gives its users rate 0.
void solve_max_min(std::span<const Activity> activities, std::span<const double> capacities,
                   std::vector<double>& rates);

}  // namespace stepcast::sim
