// SPDX-License-Identifier: Apache-2.0
// Invariants on seeded random workloads.
#include <gtest/gtest.h>

#include <map>

#include "core/each.h"
#include "recipe.h"
#include "reference_replay.h"
#include "sim/engine.h"

namespace stepcast::sim {
namespace {

constexpr int kTrials = 300;

struct Trial {
  Recipe recipe;
  Replay replayed;
  std::vector<RateChange> rates;

  const Interval& of(int task) const { return replayed.tasks[at(task)]; }
};

Trial run_random(std::uint64_t seed) {
  Trial run;
  run.recipe = RecipeMaker(seed).draw();
  Result<Replay> result =
      replay(build(run.recipe, given_order(run.recipe)), nullptr, nullptr, &run.rates);
  EXPECT_TRUE(result.has_value()) << "seed " << seed;
  if (result) run.replayed = std::move(*result);
  return run;
}

// When each member is posted: the tasks before it on its stream and its dependencies have ended,
// its issuer has started.
std::vector<std::vector<Time>> postings(const Trial& run) {
  std::vector<Time> stream_free(at(run.recipe.streams));
  std::vector<std::vector<Time>> posted(run.recipe.tasks.size());
  for (std::size_t t = 0; t < posted.size(); ++t) {
    for (const RecipeMember& member : run.recipe.tasks[t].members) {
      Time time = stream_free[at(member.stream)];
      for (const int before : member.after) time = std::max(time, run.of(before).end);
      if (member.issuer >= 0) time = std::max(time, run.of(member.issuer).start);
      posted[t].push_back(time);
      stream_free[at(member.stream)] = run.replayed.tasks[t].end;
    }
  }
  return posted;
}

TEST(ReplayProperty, EveryTaskStartsExactlyWhenItsLastMemberIsPosted) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    const auto posted = postings(run);
    for (std::size_t t = 0; t < posted.size(); ++t) {
      const Interval& interval = run.replayed.tasks[t];
      ASSERT_EQ(interval.start, *std::max_element(posted[t].begin(), posted[t].end()));
      ASSERT_EQ(interval.posted, interval.start);
    }
  }
}

TEST(ReplayProperty, NoTaskEndsBeforeItsLatencyItsWorkAndItsFloorsAllow) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    for (int t = 0; t < static_cast<int>(run.recipe.tasks.size()); ++t) {
      const RecipeTask& task = run.recipe.tasks[at(t)];
      const double least = task.latency_s + task.work / task.bound;
      const Interval& interval = run.of(t);
      ASSERT_GE((interval.end - interval.start).ps, duration(Seconds(least)).ps - 1);
      for (const RecipeMember& member : task.members) {
        if (member.issuer < 0) continue;
        ASSERT_GE(interval.end, run.of(member.issuer).start + duration(Seconds(member.floor_s)));
      }
    }
  }
}

TEST(ReplayProperty, TheRatesAddUpToTheWork) {
  AtLeast checked(kTrials);
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    struct Progress {
      Time at;
      double rate = 0;
      double done = 0;
    };
    std::map<std::int32_t, Progress> progress;
    for (const RateChange& change : run.rates) {
      Progress& entry = progress[change.task.value];
      entry.done += entry.rate * seconds(change.at - entry.at).value();
      entry.at = change.at;
      entry.rate = change.rate;
    }
    for (const auto& [task, entry] : progress) {
      const double work = run.recipe.tasks[at(task)].work;
      ASSERT_NEAR(entry.done, work, 1e-10 * work) << "seed " << seed << ", task " << task;
      ASSERT_EQ(entry.rate, 0);
      ++checked;
    }
  }
}

TEST(ReplayProperty, NoResourceIsEverUsedAboveWhatTheHoldsLeave) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    const auto posted = postings(run);
    std::map<std::int32_t, double> rates;
    for (std::size_t i = 0; i < run.rates.size(); ++i) {
      rates[run.rates[i].task.value] = run.rates[i].rate;
      const Time now = run.rates[i].at;
      if (i + 1 < run.rates.size() && run.rates[i + 1].at == now) continue;  // not yet solved
      std::vector<double> load(run.recipe.capacities.size(), 0);
      for (const auto& [task, rate] : rates) {
        for (const RecipeUse& use : run.recipe.tasks[at(task)].uses) {
          load[at(use.resource)] += use.weight * rate;
        }
      }
      for (std::size_t t = 0; t < posted.size(); ++t) {
        for (std::size_t m = 0; m < posted[t].size(); ++m) {
          if (posted[t][m] > now || run.replayed.tasks[t].end <= now) continue;
          for (const RecipeUse& hold : run.recipe.tasks[t].members[m].holds) {
            load[at(hold.resource)] += hold.weight;
          }
        }
      }
      for (std::size_t r = 0; r < load.size(); ++r) {
        ASSERT_LE(load[r], run.recipe.capacities[r] * (1 + 1e-10)) << "seed " << seed;
      }
    }
  }
}

TEST(ReplayProperty, TheRunIsNeverShorterThanItsBusiestResource) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    std::vector<double> busy(run.recipe.capacities.size(), 0);
    for (const RecipeTask& task : run.recipe.tasks) {
      for (const RecipeUse& use : task.uses) {
        busy[at(use.resource)] += use.weight * task.work / run.recipe.capacities[at(use.resource)];
      }
    }
    const double end = seconds(run.replayed.end).value();
    for (const double least : busy) ASSERT_GE(end, least * (1 - 1e-10));
  }
}

TEST(ReplayProperty, TheRunIsNeverShorterThanItsCriticalPathWithoutContention) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    std::vector<double> stream_free(at(run.recipe.streams), 0);
    std::vector<double> starts;
    std::vector<double> ends;
    for (const RecipeTask& task : run.recipe.tasks) {
      double start = 0;
      double floor = 0;
      for (const RecipeMember& member : task.members) {
        start = std::max(start, stream_free[at(member.stream)]);
        for (const int before : member.after) start = std::max(start, ends[at(before)]);
        if (member.issuer < 0) continue;
        start = std::max(start, starts[at(member.issuer)]);
        floor = std::max(floor, starts[at(member.issuer)] + member.floor_s);
      }
      starts.push_back(start);
      ends.push_back(std::max(floor, start + task.latency_s + task.work / task.bound));
      for (const RecipeMember& member : task.members) stream_free[at(member.stream)] = ends.back();
    }
    const double longest = *std::max_element(ends.begin(), ends.end());
    ASSERT_GE(seconds(run.replayed.end).value(), longest - 1e-10);
  }
}

TEST(ReplayProperty, AgreesWithTheReferenceReplay) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    const ReferenceReplay reference(run.recipe);
    for (std::size_t t = 0; t < run.recipe.tasks.size(); ++t) {
      const Interval& interval = run.replayed.tasks[t];
      ASSERT_NEAR(seconds(interval.start).value(), reference.start(t), 1e-9) << "seed " << seed;
      ASSERT_NEAR(seconds(interval.end).value(), reference.end(t), 1e-9) << "seed " << seed;
    }
  }
}

TEST(ReplayProperty, TimesDoNotDependOnIdsByASinglePicosecond) {
  for (int seed = 0; seed < kTrials; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1'000'000);
    const Numbering numbering = random_numbering(run.recipe, random);
    const Result<Replay> permuted = replay(build(run.recipe, numbering));
    ASSERT_TRUE(permuted.has_value());
    ASSERT_EQ(permuted->end, run.replayed.end);
    ASSERT_EQ(permuted->events, run.replayed.events);
    for (std::size_t t = 0; t < run.recipe.tasks.size(); ++t) {
      const Interval& moved = permuted->tasks[at(numbering.tasks[t])];
      ASSERT_EQ(moved.start, run.replayed.tasks[t].start) << "seed " << seed << ", task " << t;
      ASSERT_EQ(moved.end, run.replayed.tasks[t].end) << "seed " << seed << ", task " << t;
    }
  }
}

TEST(ReplayProperty, ASymmetricCopyBesideItChangesNothing) {
  // Folding rests on this: two copies that share nothing take the times of one.
  for (int seed = 0; seed < 50; ++seed) {
    const Trial run = run_random(static_cast<std::uint64_t>(seed));
    Recipe twice = run.recipe;
    const int resources = static_cast<int>(run.recipe.capacities.size());
    const int tasks = static_cast<int>(run.recipe.tasks.size());
    twice.streams *= 2;
    twice.capacities.insert(twice.capacities.end(), run.recipe.capacities.begin(),
                            run.recipe.capacities.end());
    for (RecipeTask task : run.recipe.tasks) {
      for (RecipeUse& use : task.uses) use.resource += resources;
      for (RecipeMember& member : task.members) {
        member.stream += run.recipe.streams;
        if (member.issuer >= 0) member.issuer += tasks;
        for (int& before : member.after) before += tasks;
        for (RecipeUse& hold : member.holds) hold.resource += resources;
      }
      twice.tasks.push_back(task);
    }
    const Result<Replay> both = replay(build(twice, given_order(twice)));
    ASSERT_TRUE(both.has_value());
    for (std::size_t t = 0; t < run.recipe.tasks.size(); ++t) {
      ASSERT_EQ(both->tasks[t].end, run.replayed.tasks[t].end);
      ASSERT_EQ(both->tasks[t + at(tasks)].end, run.replayed.tasks[t].end);
    }
  }
}

}  // namespace
}  // namespace stepcast::sim
