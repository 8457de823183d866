// SPDX-License-Identifier: Apache-2.0
// `auto`: the shortest order that a search finds for these times in this memory. It begins with the
// orders of every other schedule that has as many chunks per stage, so that it is never longer than
// the best of them that fits. Then it runs the pipeline under many policies (greedy_orders.h), and
// turns the numbers of the best one as long as that helps. What it compares is the replay of whole
// orders (order_replay.h). It is the same on every run.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/work_limits.h"
#include "schedule/greedy_orders.h"
#include "schedule/order_replay.h"
#include "schedule/other_orders.h"
#include "schedule/schedule.h"
#include "schedule/zero_bubble.h"

namespace stepcast {
namespace {

// A search puts no more passes than this in all: long steps are tried under fewer policies.
constexpr std::int64_t kMostPasses = 4'000'000;
constexpr double kSame = 1e-9;  // relative: two sums of the same times

struct Found {
  std::vector<StageOrder> orders;
  double excess = 0;  // activations beyond the room of a stage
  double step = 0;
  double held = 0;  // of the stage that holds most
};

bool is_less(double a, double b) { return a < b - kSame * std::abs(b); }

// Orders that fit are better than others, then shorter ones, then those that hold less.
bool is_better(const Found& a, const Found& b) {
  if (a.excess != b.excess) return a.excess < b.excess;
  if (is_less(a.step, b.step) || is_less(b.step, a.step)) return a.step < b.step;
  return is_less(a.held, b.held);
}

class Search {
 public:
  Search(const Pipeline& pipeline, const PassTimes& times)
      : pipeline_(pipeline),
        times_(times),
        left_(kMostPasses / (3 * pipeline.all_chunks() * pipeline.micro_batches)) {
    for (std::int64_t j = 0; j < pipeline.stages; ++j) {
      double work = 0;
      for (std::int64_t c = 0; c < pipeline.chunks; ++c) {
        const ChunkTimes& chunk = times.of(j, c);
        work += chunk.forward + chunk.input_gradient + chunk.weight_gradient;
      }
      period_ = std::max(period_, work);
    }
  }

  std::vector<StageOrder> run() {
    try_other_schedules();
    try_limits();
    try_policies();
    turn_policy();
    return std::move(best_->orders);
  }

 private:
  std::optional<Found> judged(std::vector<StageOrder> orders) const;
  void keep(std::optional<Found> found);
  void try_other_schedules();
  void try_limits();
  bool try_policy(const GreedyPolicy& policy);  // whether it is the best so far
  void try_policies();
  void turn_policy();

  const Pipeline& pipeline_;
  const PassTimes& times_;
  std::int64_t left_;  // orders that may still be tried
  double period_ = 0;  // the work of a micro-batch on the slowest stage
  std::optional<Found> best_;
  GreedyPolicy policy_;  // the best one, and what it gives
  std::optional<Found> greedy_;
};

std::optional<Found> Search::judged(std::vector<StageOrder> orders) const {
  end_if_stopped();
  const auto span = replay_orders(pipeline_, times_, orders);
  if (!span) return std::nullopt;
  Found found{std::move(orders), 0, step_of(*span, times_), std::ranges::max(span->held)};
  if (!has_room(*span, times_)) {
    for (std::size_t j = 0; j < span->held.size(); ++j) {
      found.excess = std::max(found.excess, span->held[j] - times_.room[j]);
    }
  }
  return found;
}

void Search::keep(std::optional<Found> found) {
  if (found && (!best_ || is_better(*found, *best_))) best_ = std::move(found);
}

void Search::try_other_schedules() {
  for (auto& orders : other_orders(pipeline_, times_)) keep(judged(std::move(orders)));
}

// The zero-bubble rules under every limit of micro-batches.
void Search::try_limits() {
  const std::int64_t most = 2 * pipeline_.stages;
  for (std::int64_t limit = 2; limit <= most && left_ > 0; ++limit, --left_) {
    auto orders = pipeline_.chunks == 1 ? zero_bubble_orders(pipeline_, times_, limit)
                                        : zero_bubble_v_orders(pipeline_, times_, limit);
    if (!orders.empty()) keep(judged(std::move(orders)));
  }
}

bool Search::try_policy(const GreedyPolicy& policy) {
  if (left_-- <= 0) return false;
  auto orders = greedy_orders(pipeline_, times_, policy);
  if (!orders) return false;
  auto found = judged(std::move(*orders));
  if (!found || (greedy_ && !is_better(*found, *greedy_))) return false;
  policy_ = policy;
  greedy_ = found;
  keep(std::move(found));
  return true;
}

void Search::try_policies() {
  for (int preference = 0; preference < kGreedyPreferences; ++preference) {
    for (const double interval : {0.0, 0.35, 0.7, 1.0}) {
      for (std::int64_t sixths = 2; sixths <= 12; sixths += 2) {
        const std::int64_t in_flight = std::max<std::int64_t>(1, sixths * pipeline_.stages / 6);
        try_policy({preference, in_flight, interval * period_, 0.5});
      }
    }
  }
}

// One number at a time.
void Search::turn_policy() {
  if (!greedy_) return;
  for (bool better = true; better;) {
    better = false;
    for (const std::int64_t more : {-1, 1}) {
      GreedyPolicy policy = policy_;
      policy.in_flight = std::max<std::int64_t>(1, policy.in_flight + more);
      better = try_policy(policy) || better;
    }
    for (const double factor : {0.8, 0.9, 1.1, 1.25}) {
      GreedyPolicy policy = policy_;
      policy.interval *= factor;
      better = try_policy(policy) || better;
    }
    for (const double delay : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      GreedyPolicy policy = policy_;
      policy.delay = delay;
      better = try_policy(policy) || better;
    }
  }
}

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes& times) {
  return Search(pipeline, times).run();
}

}  // namespace

std::vector<std::vector<StageOrder>> other_orders(const Pipeline& pipeline,
                                                  const PassTimes& times) {
  std::vector<std::vector<StageOrder>> out;
  for (std::size_t row = 0; row < schedules().size(); ++row) {
    const Schedule& rules = *schedules()[row];
    const bool same_chunks = rules.chunks == pipeline.chunks &&
                             (pipeline.chunks == 1 || rules.placement == pipeline.placement);
    if (!rules.is_made() || !same_chunks || rules.whole_groups ||
        rules.least_rounds * pipeline.stages > pipeline.micro_batches) {
      continue;
    }
    out.push_back(make_orders(static_cast<ScheduleKind>(row), pipeline, times));
  }
  return out;
}

extern const Schedule kAuto = {.name = "auto",
                               .orders = orders,
                               .placement = Placement::kFolded,
                               .chunks = Schedule::kOneOrTwo,
                               .splits_backward = true,
                               .validates_after_step = true,
                               .takes_the_shortest = true,
                               .bubble = "the least that a search finds",
                               .in_flight = "what memory allows",
                               .source = "docs/schedules.md"};

}  // namespace stepcast
