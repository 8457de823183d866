// SPDX-License-Identifier: Apache-2.0
#include "predict/jobs_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/assert.h"
#include "layout/scenario.h"
#include "predict/budget.h"
#include "predict/check_replay.h"
#include "predict/link_use.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/workload_builder.h"
#include "program/pass_pair.h"

namespace stepcast {
namespace {

// All jobs begin at once. The first steps fill pipelines and let the jobs fall into their pace, and
// the mean of the next ones is the step: jobs whose steps differ in length meet another way in
// each. At least so many are measured, and as many as a whole step of each other job takes.
constexpr std::int32_t kFirstSteps = 2;
constexpr std::int32_t kLeastMeasured = 8;
constexpr std::int32_t kMostMeasured = 1 << 12;
constexpr std::size_t kMostShown = 8;  // links

using Partners = std::vector<std::vector<std::int32_t>>;

sim::Time end_of_step(const PlacedJob& job, const Simulation& simulation, std::int32_t step) {
  sim::Time end;
  for (std::size_t c = 0; c < job.symmetry().ranks.size(); ++c) {
    const auto own = static_cast<std::int32_t>(c);
    end = std::max(end, read_timeline(job.input(), simulation, own, step).step_end);
  }
  return end;
}

TimeParts& operator+=(TimeParts& sum, const TimeParts& more) {
  for (const TimePartRow& row : kTimeParts) sum.*row.time += more.*row.time;
  return sum;
}

// The last step, whose parts are those of the mean of all that were measured.
ClassTimeline mean_of_steps(const PlacedJob& job, const Simulation& simulation, std::int32_t c,
                            std::int32_t measured) {
  ClassTimeline out;
  TimeParts parts;
  Seconds busy, exposed;
  sim::Time begin;
  for (std::int32_t step = kFirstSteps; step < kFirstSteps + measured; ++step) {
    out = read_timeline(job.input(), simulation, c, step);
    if (step == kFirstSteps) begin = out.step_begin;
    parts += out.parts;
    busy += out.busy;
    exposed += out.exposed_in_span;
  }
  const double part = 1.0 / measured;
  for (const TimePartRow& row : kTimeParts) parts.*row.time = parts.*row.time * part;
  out.parts = parts;
  out.busy = busy * part;
  out.exposed_in_span = exposed * part;
  out.step_begin = {out.step_end.ps - (out.step_end.ps - begin.ps) / measured};
  return out;
}

class Together {
 public:
  explicit Together(const std::vector<PlacedJob*>& jobs) : jobs_(jobs) {}

  // `steps`, by job: those that count, and one more, beside whose beginning the last one ends.
  Result<std::vector<Simulation>> replay(const std::vector<std::int32_t>& steps) {
    SharedWorkload shared;
    std::vector<Partners> partners;
    for (const PlacedJob* job : jobs_) {
      auto partner = match_transfers(job->program());
      if (!partner) return failure(partner.error());
      partners.push_back(std::move(*partner));
    }
    std::vector<StepsToReplay> all;
    for (std::size_t j = 0; j < jobs_.size(); ++j) all.push_back({&jobs_[j]->input(), steps[j]});
    if (const auto affordable = afford_replays(all); !affordable) {
      return failure(affordable.error());
    }
    std::vector<std::unique_ptr<WorkloadBuilder>> builders;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const SimulationInput& input = jobs_[j]->input();
      builders.push_back(std::make_unique<WorkloadBuilder>(input, partners[j], &shared));
      const std::vector<std::int32_t> whole(input.symmetry.ranks.size(), 0);
      for (std::int32_t step = 0; step <= steps[j]; ++step) builders.back()->add_step(whole);
    }
    auto replayed = sim::replay(
        shared.workload,
        [](sim::TaskId task, const void* builder) {
          return static_cast<const WorkloadBuilder*>(builder)->describe(task);
        },
        builders.front().get());
    if (!replayed) return failure(replayed.error());
    std::vector<Simulation> out;
    for (const auto& builder : builders) {
      out.push_back(builder->take(*replayed));
      out.back().tasks.pop_back();
      out.back().steps = static_cast<std::int32_t>(out.back().tasks.size());
    }
    return out;
  }

 private:
  const std::vector<PlacedJob*>& jobs_;
};

// Steps of another job that began and ended while those of the first were measured; 0: none did.
Seconds mean_between(const PlacedJob& job, const Simulation& simulation, sim::Time begin,
                     sim::Time end) {
  sim::Time first, last;
  std::int32_t steps = -1;
  for (std::int32_t step = 0; step < simulation.steps; ++step) {
    const sim::Time ends = end_of_step(job, simulation, step);
    if (ends < begin) continue;
    if (ends > end) break;
    if (++steps == 0) first = ends;
    last = ends;
  }
  return steps > 0 ? sim::seconds(last - first) / static_cast<double>(steps) : Seconds();
}

Error too_long(std::size_t jobs, std::size_t job) {
  const std::string key = jobs == 2 ? "other_jobs[0]" : fmt::format("other_jobs[{}]", job - 1);
  return {ErrorCode::kNotSupported,
          fmt::format("a step of it takes as long as {} steps of this job", kMostMeasured / 2), "",
          key, "put the job with the longer steps first"};
}

}  // namespace

Result<JointReplay> replay_together(const std::vector<PlacedJob*>& jobs,
                                    const std::vector<Seconds>& alone) {
  // Two steps of the longest hold one that begins and ends among them.
  const Seconds longest = *std::ranges::max_element(alone);
  const double wanted = std::ceil(2 * (longest / alone.front()));
  auto measured =
      static_cast<std::int32_t>(std::clamp<double>(wanted, kLeastMeasured, kMostMeasured));
  std::vector<std::int32_t> steps = {kFirstSteps + measured};
  constexpr double kMostSteps = 1 << 20;
  for (std::size_t j = 1; j < jobs.size(); ++j) {
    const double times = (steps.front() + 1) * (alone.front() / alone[j]);
    steps.push_back(static_cast<std::int32_t>(std::min(std::ceil(times), kMostSteps)) + 2);
  }
  for (;;) {
    auto all = Together(jobs).replay(steps);
    if (!all) return failure(all.error());
    const Simulation& first = all->front();
    const sim::Time begin = end_of_step(*jobs.front(), first, kFirstSteps - 1);
    const sim::Time end = end_of_step(*jobs.front(), first, steps.front() - 1);
    bool is_long_enough = true;
    JointReplay out;
    for (std::size_t j = 1; j < jobs.size(); ++j) {
      if (end_of_step(*jobs[j], (*all)[j], (*all)[j].steps - 1) < end) {
        steps[j] *= 2;
        is_long_enough = false;
        continue;
      }
      const Seconds mean = mean_between(*jobs[j], (*all)[j], begin, end);
      out.steps.push_back(mean);
      if (mean.value() > 0 || !is_long_enough) continue;
      // A step that others slow may outlast what was measured.
      if (2 * measured > kMostMeasured) return failure(too_long(jobs.size(), j));
      measured *= 2;
      steps.front() = kFirstSteps + measured;
      is_long_enough = false;
    }
    if (!is_long_enough) continue;
    if (jobs.front()->input().check) {
      const std::optional<std::string> broken = broken_cause(jobs.front()->input(), first);
      STEPCAST_ASSERT(!broken, broken->c_str());
    }
    for (std::size_t c = 0; c < jobs.front()->symmetry().ranks.size(); ++c) {
      out.timeline.push_back(
          mean_of_steps(*jobs.front(), first, static_cast<std::int32_t>(c), measured));
    }
    out.simulation = std::move(all->front());
    return out;
  }
}

std::vector<SharedLink> links_of_several(const std::vector<PlacedJob*>& jobs,
                                         const std::vector<Seconds>& steps) {
  std::vector<std::vector<LinkTime>> use;
  for (const PlacedJob* job : jobs)
    use.push_back(link_use(job->input(), job->pricing().collectives));
  std::vector<SharedLink> out;
  const Topology& topology = jobs.front()->scenario().cluster.topology;
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    SharedLink link{topology.name(LinkId(l)), use.front()[l].all() / steps.front(), 0};
    for (std::size_t j = 1; j < jobs.size(); ++j) link.others += use[j][l].all() / steps[j];
    if (link.own > 0 && link.others > 0) out.push_back(std::move(link));
  }
  std::ranges::stable_sort(out, [](const SharedLink& a, const SharedLink& b) {
    return a.own + a.others > b.own + b.others;
  });
  out.resize(std::min(out.size(), kMostShown));
  return out;
}

}  // namespace stepcast
