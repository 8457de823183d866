// SPDX-License-Identifier: Apache-2.0
// Reads the semantics of sim/engine.cpp naively, in seconds and in quadratic time: all tasks are
// looked at after every event, and all rates are solved anew from nothing.
#pragma once

#include <limits>
#include <vector>

#include "recipe.h"
#include "solve_max_min.h"

namespace stepcast::sim {

class ReferenceReplay {
 public:
  explicit ReferenceReplay(const Recipe& recipe) : recipe_(recipe), states_(recipe.tasks.size()) {
    for (std::size_t t = 0; t < states_.size(); ++t) {
      states_[t].posted.assign(recipe.tasks[t].members.size(), false);
      states_[t].remaining = recipe.tasks[t].work;
      states_[t].latency_left = recipe.tasks[t].latency_s;
    }
    while (step()) {
    }
  }

  double start(std::size_t task) const { return states_[task].start; }
  double end(std::size_t task) const { return states_[task].end; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct State {
    std::vector<bool> posted;
    double start = kNever;
    double end = kNever;
    double latency_left = 0;
    double remaining = 0;
    double rate = 0;
    bool has_started() const { return start < kNever; }
    bool has_ended() const { return end < kNever; }
  };

  bool heads_stream(std::size_t task, int stream) const {
    for (std::size_t t = 0; t < task; ++t) {
      for (const RecipeMember& member : recipe_.tasks[t].members) {
        if (member.stream == stream && !states_[t].has_ended()) return false;
      }
    }
    return true;
  }

  bool may_post(std::size_t task, const RecipeMember& member) const {
    if (member.issuer >= 0 && !states_[at(member.issuer)].has_started()) return false;
    for (const int before : member.after) {
      if (!states_[at(before)].has_ended()) return false;
    }
    return heads_stream(task, member.stream);
  }

  double floor_of(std::size_t task) const {
    double floor = 0;
    for (const RecipeMember& member : recipe_.tasks[task].members) {
      if (member.issuer < 0) continue;
      floor = std::max(floor, states_[at(member.issuer)].start + member.floor_s);
    }
    return floor;
  }

  bool post_and_start() {
    bool changed = false;
    for (std::size_t t = 0; t < states_.size(); ++t) {
      if (states_[t].has_started()) continue;
      bool all = true;
      for (std::size_t m = 0; m < states_[t].posted.size(); ++m) {
        if (!states_[t].posted[m] && may_post(t, recipe_.tasks[t].members[m])) {
          states_[t].posted[m] = changed = true;
        }
        all = all && states_[t].posted[m];
      }
      if (all) states_[t].start = now_;
    }
    return changed;
  }

  bool end_tasks() {
    bool changed = false;
    for (std::size_t t = 0; t < states_.size(); ++t) {
      State& state = states_[t];
      if (!state.has_started() || state.has_ended()) continue;
      if (state.latency_left > kDust || state.remaining > kDust) continue;
      if (now_ < floor_of(t) - kDust) continue;
      state.end = now_;
      changed = true;
    }
    return changed;
  }

  void solve() {
    std::vector<double> left = recipe_.capacities;
    std::vector<std::vector<Use>> uses;
    std::vector<std::size_t> flowing;
    for (std::size_t t = 0; t < states_.size(); ++t) {
      const State& state = states_[t];
      if (state.has_ended()) continue;
      for (std::size_t m = 0; m < state.posted.size(); ++m) {
        if (!state.posted[m]) continue;
        for (const RecipeUse& hold : recipe_.tasks[t].members[m].holds) {
          left[at(hold.resource)] -= hold.weight;
        }
      }
      if (!state.has_started() || state.latency_left > kDust || state.remaining <= kDust) continue;
      flowing.push_back(t);
      uses.emplace_back();
      for (const RecipeUse& use : recipe_.tasks[t].uses) {
        uses.back().push_back({ResourceId(use.resource), use.weight});
      }
    }
    std::vector<Activity> activities;
    for (std::size_t i = 0; i < flowing.size(); ++i) {
      const RecipeTask& task = recipe_.tasks[flowing[i]];
      activities.push_back({task.bound, task.share, uses[i]});
    }
    for (State& state : states_) state.rate = 0;
    const std::vector<double> rates = solve_max_min(activities, left);
    for (std::size_t i = 0; i < flowing.size(); ++i) states_[flowing[i]].rate = rates[i];
  }

  // Goes from one event to the next; false when nothing is left to happen.
  bool step() {
    while (post_and_start() || end_tasks()) {
    }
    solve();
    double wait = kNever;
    for (std::size_t t = 0; t < states_.size(); ++t) {
      const State& state = states_[t];
      if (!state.has_started() || state.has_ended()) continue;
      if (state.latency_left > kDust) {
        wait = std::min(wait, state.latency_left);
      } else if (state.remaining > kDust) {
        wait = std::min(wait, state.remaining / state.rate);
      } else {
        wait = std::min(wait, floor_of(t) - now_);
      }
    }
    if (wait == kNever) return false;
    now_ += wait;
    for (State& state : states_) {
      if (!state.has_started() || state.has_ended()) continue;
      if (state.latency_left > kDust) {
        state.latency_left -= wait;
      } else {
        state.remaining -= state.rate * wait;
      }
    }
    return true;
  }

  static constexpr double kDust = 1e-12;  // what rounding leaves of latencies and of work

  const Recipe& recipe_;
  std::vector<State> states_;
  double now_ = 0;
};

}  // namespace stepcast::sim
