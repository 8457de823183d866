// SPDX-License-Identifier: Apache-2.0
// One line on standard error that tells how far a search is; only on a terminal.
#pragma once

#include "cli/session.h"
#include "plan/search.h"

namespace stepcast::cli {

class PlanProgress {
 public:
  PlanProgress(const OutputOptions& output, double time_limit_s);
  void show(const SearchProgress& state);
  void clear();

 private:
  bool visible_;
  double time_limit_s_;
  double shown_at_s_ = -1;
};

}  // namespace stepcast::cli
