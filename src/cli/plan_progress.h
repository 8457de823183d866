// SPDX-License-Identifier: Apache-2.0
// One line on standard error that tells how far a search is; only on a terminal.
#pragma once

#include <chrono>
#include <string>

#include "cli/session.h"

namespace stepcast {
struct SearchProgress;
}  // namespace stepcast

namespace stepcast::cli {

class PlanProgress {
 public:
  PlanProgress(const OutputOptions& output, double time_limit_s);
  // Begins the next of several searches, which the line then names.
  void begin(const std::string& search);
  void show(const SearchProgress& state);
  void clear();

 private:
  bool visible_;
  double time_limit_s_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_at_s_ = -1;
  std::string search_;
};

}  // namespace stepcast::cli
