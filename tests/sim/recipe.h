// SPDX-License-Identifier: Apache-2.0
// A workload as a plain description that can be drawn at random, built in another order, or read by
// the reference replay.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/workload.h"

namespace stepcast::sim {

inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

struct RecipeUse {
  int resource;
  double weight;
};

struct RecipeMember {
  int stream;
  int issuer = -1;
  double floor_s = 0;
  std::vector<RecipeUse> holds = {};
  std::vector<int> after = {};  // tasks
};

struct RecipeTask {
  std::vector<RecipeMember> members = {};
  double latency_s = 0;
  double work = 0;
  double bound = 1;
  double share = 1;
  std::vector<RecipeUse> uses = {};
};

struct Recipe {
  std::vector<double> capacities = {};
  int streams = 0;
  std::vector<RecipeTask> tasks = {};  // in an order that no wait contradicts
};

// Draws workloads with everything in them: joint tasks, dependencies, issuers, floors, latencies,
// contention, holds (all together never a whole resource) and many simultaneous events.
class RecipeMaker {
 public:
  explicit RecipeMaker(std::uint64_t seed) : random_(seed) {}

  Recipe draw() {
    Recipe recipe;
    recipe.streams = between(1, 7);
    recipe.capacities.resize(at(between(1, 5)));
    for (double& capacity : recipe.capacities) capacity = real(4, 12);
    recipe.tasks.resize(at(between(1, 60)));
    for (int t = 0; t < static_cast<int>(recipe.tasks.size()); ++t) {
      recipe.tasks[at(t)] = draw_task(recipe, t);
    }
    return recipe;
  }

 private:
  bool chance(int in) { return random_() % static_cast<std::uint64_t>(in) == 0; }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) {
    // Half of all draws come from a few values, so that many things happen at one instant.
    if (chance(2)) return low + (high - low) * 0.25 * between(0, 4);
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  RecipeTask draw_task(const Recipe& recipe, int index) {
    RecipeTask task;
    std::vector<int> streams(at(recipe.streams));
    std::iota(streams.begin(), streams.end(), 0);
    std::shuffle(streams.begin(), streams.end(), random_);
    streams.resize(at(chance(3) ? between(1, recipe.streams) : 1));
    for (const int stream : streams) task.members.push_back(draw_member(recipe, index, stream));
    if (chance(3)) task.latency_s = real(0, 1);
    if (chance(6)) return task;  // no work at all
    task.work = real(0.5, 3);
    task.bound = real(0.5, 3);
    task.share = real(1, 4);
    for (int r = 0; r < static_cast<int>(recipe.capacities.size()); ++r) {
      if (chance(3)) task.uses.push_back({r, real(0.5, 4)});
    }
    return task;
  }

  RecipeMember draw_member(const Recipe& recipe, int index, int stream) {
    RecipeMember member{stream};
    while (index > 0 && chance(2)) member.after.push_back(between(0, index - 1));
    if (index > 0 && chance(3)) {
      member.issuer = between(0, index - 1);
      if (chance(2)) member.floor_s = real(0, 4);
    }
    if (chance(4)) {
      // A stream holds for one task at a time: together they leave a quarter of the resource.
      const int resource = between(0, static_cast<int>(recipe.capacities.size()) - 1);
      const double most = 0.75 * recipe.capacities[at(resource)] / recipe.streams;
      member.holds.push_back({resource, real(0.1 * most, most)});
    }
    return member;
  }

  std::mt19937_64 random_;
};

// Which id each stream, resource and task of a recipe gets.
struct Numbering {
  std::vector<int> streams;
  std::vector<int> resources;
  std::vector<int> tasks;
};

// Random ids; the order of every stream stays, and issuers come before what they issue.
template <class Random>
Numbering random_numbering(const Recipe& recipe, Random& random) {
  Numbering numbering;
  numbering.streams.resize(at(recipe.streams));
  numbering.resources.resize(recipe.capacities.size());
  numbering.tasks.resize(recipe.tasks.size());
  for (auto* ids : {&numbering.streams, &numbering.resources}) {
    std::iota(ids->begin(), ids->end(), 0);
    std::shuffle(ids->begin(), ids->end(), random);
  }
  std::vector<std::size_t> left(recipe.tasks.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  const auto must_precede = [&](std::size_t before, std::size_t after) {
    for (const RecipeMember& later : recipe.tasks[after].members) {
      if (later.issuer == static_cast<int>(before)) return true;
      for (const RecipeMember& earlier : recipe.tasks[before].members) {
        if (earlier.stream == later.stream) return true;
      }
    }
    return false;
  };
  for (int id = 0; !left.empty(); ++id) {
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < left.size(); ++i) {
      bool is_free = true;
      for (std::size_t j = 0; j < i; ++j) is_free = is_free && !must_precede(left[j], left[i]);
      if (is_free) free.push_back(i);
    }
    const std::size_t chosen = free[random() % free.size()];
    numbering.tasks[left[chosen]] = id;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return numbering;
}

inline Numbering given_order(const Recipe& recipe) {
  Numbering numbering;
  numbering.streams.resize(at(recipe.streams));
  numbering.resources.resize(recipe.capacities.size());
  numbering.tasks.resize(recipe.tasks.size());
  for (auto* ids : {&numbering.streams, &numbering.resources, &numbering.tasks}) {
    std::iota(ids->begin(), ids->end(), 0);
  }
  return numbering;
}

class RecipeBuilder {
 public:
  RecipeBuilder(const Recipe& recipe, const Numbering& numbering)
      : recipe_(recipe), numbering_(numbering) {}

  Workload build() {
    Workload workload;
    std::vector<double> capacities(recipe_.capacities.size());
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      capacities[at(numbering_.resources[r])] = recipe_.capacities[r];
    }
    for (const double capacity : capacities) workload.add_resource(capacity);
    for (int s = 0; s < recipe_.streams; ++s) workload.add_stream();
    std::vector<std::size_t> order(recipe_.tasks.size());
    for (std::size_t t = 0; t < order.size(); ++t) order[at(numbering_.tasks[t])] = t;
    for (const std::size_t t : order) add(workload, recipe_.tasks[t]);
    for (std::size_t t = 0; t < order.size(); ++t) depend(workload, t);
    return workload;
  }

 private:
  std::vector<Use> uses(const std::vector<RecipeUse>& from) const {
    std::vector<Use> result;
    for (const RecipeUse& use : from) {
      result.push_back({ResourceId(numbering_.resources[at(use.resource)]), use.weight});
    }
    return result;
  }

  void add(Workload& workload, const RecipeTask& task) const {
    std::vector<std::vector<Use>> holds;
    std::vector<MemberSpec> members;
    for (const RecipeMember& member : task.members) holds.push_back(uses(member.holds));
    for (std::size_t m = 0; m < holds.size(); ++m) {
      const RecipeMember& member = task.members[m];
      const TaskId issuer =
          member.issuer < 0 ? TaskId() : TaskId(numbering_.tasks[at(member.issuer)]);
      members.push_back({StreamId(numbering_.streams[at(member.stream)]), issuer,
                         duration(Seconds(member.floor_s)), holds[m]});
    }
    const std::vector<Use> fluid = uses(task.uses);
    workload.add_task({.members = members,
                       .latency = duration(Seconds(task.latency_s)),
                       .work = task.work,
                       .rate_bound = task.bound,
                       .share = task.share,
                       .uses = fluid});
  }

  void depend(Workload& workload, std::size_t task) const {
    const std::vector<RecipeMember>& members = recipe_.tasks[task].members;
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (const int before : members[m].after) {
        workload.depend(TaskId(numbering_.tasks[at(before)]), TaskId(numbering_.tasks[task]),
                        static_cast<std::int32_t>(m));
      }
    }
  }

  const Recipe& recipe_;
  const Numbering& numbering_;
};

inline Workload build(const Recipe& recipe, const Numbering& numbering) {
  return RecipeBuilder(recipe, numbering).build();
}

}  // namespace stepcast::sim
