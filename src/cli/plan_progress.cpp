// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "plan/search.h"
#include "report/number_text.h"
#include "report/search_gap.h"

namespace stepcast::cli {
namespace {

constexpr double kInterval = 0.2;  // seconds between two lines

}  // namespace

PlanProgress::PlanProgress(const OutputOptions& output, double time_limit_s)
    : visible_(!output.quiet && isatty(STDERR_FILENO) == 1), time_limit_s_(time_limit_s) {}

void PlanProgress::begin(const std::string& search) {
  search_ = search + "  ";
  if (shown_at_s_ > 0) shown_at_s_ = 0;  // its clock starts anew
}

void PlanProgress::show(const SearchProgress& state) {
  if (!visible_ || state.elapsed_s - shown_at_s_ < kInterval) return;
  shown_at_s_ = state.elapsed_s;
  std::string line = search_ + fmt::format("{:.0f} s", state.elapsed_s);
  if (state.replayed == 0) {
    line += fmt::format("  {} bounds, {}/s", number_text(double(state.bounded), 3),
                        number_text(double(state.bounded) / state.elapsed_s, 3));
  } else {
    line += fmt::format("  {} replayed, {} open", state.replayed, state.open);
  }
  if (state.best_s > 0) line += fmt::format("  best {}", time_text(Seconds(state.best_s)));
  if (state.bound_s > 0 && state.best_s > state.bound_s) {
    line += ", " + gap_text(state.best_s / state.bound_s - 1);
  } else if (state.bound_s > 0) {
    line += fmt::format("  bound {}", time_text(Seconds(state.bound_s)));
  }
  if (time_limit_s_ > 0) {
    const std::chrono::duration<double> since_start = std::chrono::steady_clock::now() - start_;
    line += fmt::format("  {:.0f} s left", std::max(0.0, time_limit_s_ - since_start.count()));
  } else if (state.replayed > 0) {
    const double rate = static_cast<double>(state.replayed) / state.elapsed_s;
    line += fmt::format("  at most {:.0f} s left", static_cast<double>(state.open) / rate);
  }
  tell_progress(line);
}

void PlanProgress::clear() {
  if (!visible_ || shown_at_s_ < 0) return;
  clear_progress();
}

}  // namespace stepcast::cli
