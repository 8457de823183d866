// SPDX-License-Identifier: Apache-2.0
#include "predict/step_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>

#include "core/parallel.h"
#include "core/seeded_random.h"
#include "core/statistics.h"
#include "layout/scenario.h"
#include "predict/path_of_tasks.h"
#include "predict/uneven_ranks.h"
#include "predict/workload_builder.h"
#include "program/block_groups.h"

namespace stepcast {
namespace {

// A forecast replays some million tasks a second: more than this would take hours.
constexpr double kMostTasks = 2e10;
// No draw makes a run shorter than this part of it.
constexpr double kLeastPart = 0.05;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Box and Muller's, of two uniform ones.
double normal(SeededRandom& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// A disturbance that is rare and long: it comes with some chance, and its length is exponential.
// Mean and variance are those of the jitter; the mean is in the price already.
double disturbance(const Jitter& jitter, SeededRandom& random) {
  const double mean = jitter.tail.value();
  const double hit = random.uniform(), length = random.uniform();
  if (!(mean > 0)) return 0;
  const double each = (jitter.tail_variance_s2 + mean * mean) / (2 * mean);
  const double chance = std::min(1.0, mean / each);
  return (hit < chance ? -std::log(1 - length) * mean / chance : 0) - mean;
}

// The time of one run of one rank, and how much of it varies.
struct Varying {
  double seconds = 0;   // that the rank computes itself
  double ordinary = 0;  // as much on a GPU at full speed
  Jitter measured;
};

// Runs of an instruction by ranks that meet inside it go at one pace.
struct Pace {
  std::int32_t rank;  // that sets it
  double seconds;     // that it computes
  double excess;      // of these, for what was drawn and for a slow GPU
};

class Sampler {
 public:
  Sampler(const SimulationInput& input, std::int32_t steps, const SampleOptions& options)
      : in_(input), steps_(steps), options_(options), spec_(input.scenario.cluster.spec) {
    group_ranks();
    list_runs();
  }

  Result<StepSamples> run();

 private:
  struct Sample {
    double seconds = 0;
    std::vector<std::pair<std::int32_t, double>> costs;  // of ranks on the critical path
    Errors errors;
  };
  using Paces = std::vector<std::vector<std::vector<Pace>>>;  // by step, class, instruction

  void group_ranks();
  void list_runs();
  Jitter measured(std::int32_t rank_class, const Instruction& what) const;
  std::int32_t rank_of(std::int32_t c) const { return in_.symmetry.ranks[at(c)].front().value; }
  double drawn(const Varying& run, double device, SeededRandom& random) const;
  Pace pace(const std::vector<std::int32_t>& classes, std::size_t i,
            const std::vector<double>& devices, std::vector<SeededRandom>& random) const;
  Paces draw(std::uint64_t stream) const;
  StepDraws delays(const Paces& paces) const;
  Sample sample(std::uint64_t stream) const;
  Sample read(const WorkloadBuilder& builder, const Simulation& simulation,
              const Paces& paces) const;
  StepSamples summed(const std::vector<Sample>& samples) const;

  const SimulationInput& in_;
  std::int32_t steps_;
  const SampleOptions& options_;
  const ClusterSpec& spec_;
  std::vector<std::vector<std::int32_t>> meet_;  // classes that meet inside passes, ascending
  std::vector<std::vector<Varying>> runs_;       // by class, instruction
  std::vector<std::vector<std::int32_t>> partner_;
};

void Sampler::group_ranks() {
  std::vector<AxisGroup> in_blocks = groups_in_blocks(in_.program);
  std::map<RankId, std::vector<std::int32_t>> groups;
  const RanksThatMeet ranks(in_.grid, in_blocks);
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(in_.symmetry.ranks.size()); ++c) {
    groups[ranks.lowest(RankId(rank_of(c)))].push_back(c);
  }
  for (auto& [lowest, classes] : groups) meet_.push_back(std::move(classes));
}

Jitter Sampler::measured(std::int32_t rank_class, const Instruction& what) const {
  Jitter sum;
  for (const RunCosts::PricedBlock* block : in_.costs.blocks(rank_class, what)) {
    for (const PricedOperation& one : block->operations) sum += one.cost.jitter;
  }
  return sum;
}

void Sampler::list_runs() {
  const bool given = spec_.jitter > 0;
  std::map<std::pair<std::int32_t, std::size_t>, Jitter> known;
  runs_.resize(in_.symmetry.ranks.size());
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(runs_.size()); ++c) {
    const auto& list = in_.costs.role(c).instructions;
    const DeviceId device(rank_of(c));
    const double speed = in_.scenario.cluster.topology.kind(device).speed;
    runs_[at(c)].resize(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_run()) continue;
      const RunCost& cost = in_.costs.run(c, list[i]);
      Varying& run = runs_[at(c)][i];
      run.seconds = (cost.compute + cost.recompute + cost.optimizer).value();
      run.ordinary = run.seconds * speed;
      if (given) continue;
      const auto [found, fresh] = known.try_emplace({in_.costs.table(c), i});
      if (fresh) found->second = measured(c, list[i]);
      run.measured = found->second;
    }
  }
}

// The time that the rank computes.
double Sampler::drawn(const Varying& run, double device, SeededRandom& random) const {
  double out = run.seconds * device;
  if (spec_.jitter > 0) {
    out += run.seconds * spec_.jitter * normal(random);
  } else if (run.measured.variance_s2 > 0 || run.measured.tail.value() > 0) {
    out += std::sqrt(run.measured.variance_s2) * normal(random) + disturbance(run.measured, random);
  }
  return std::max(out, kLeastPart * run.seconds);
}

// Measured scatter has the wait for the last member of a group in the price already: its ranks have
// one draw.
Pace Sampler::pace(const std::vector<std::int32_t>& classes, std::size_t i,
                   const std::vector<double>& devices, std::vector<SeededRandom>& random) const {
  Pace out{-1, 0, 0};
  const bool one_draw = !(spec_.jitter > 0);
  const auto first = at(classes.front());
  const double common = one_draw ? drawn(runs_[first][i], devices[first], random[first]) -
                                       runs_[first][i].seconds * devices[first]
                                 : 0;
  for (const std::int32_t c : classes) {
    const Varying& run = runs_[at(c)][i];
    const double seconds =
        one_draw ? std::max(run.seconds * devices[at(c)] + common, kLeastPart * run.seconds)
                 : drawn(run, devices[at(c)], random[at(c)]);
    if (out.rank >= 0 && !(seconds > out.seconds)) continue;
    out = {rank_of(c), seconds, seconds - run.ordinary};
  }
  return out;
}

// Each rank draws from a sequence of its own.
Sampler::Paces Sampler::draw(std::uint64_t stream) const {
  std::vector<SeededRandom> random;
  std::vector<double> devices;
  SeededRandom seeds(options_.seed, stream);
  for (std::size_t c = 0; c < runs_.size(); ++c) {
    random.emplace_back(seeds.bits(), c);
    devices.push_back(std::max(kLeastPart, 1 + spec_.spread * normal(random.back())));
  }
  Paces out(at(steps_) + 1);
  for (auto& step : out) {
    step.resize(runs_.size());
    for (const std::vector<std::int32_t>& classes : meet_) {
      const auto& list = in_.costs.role(classes.front()).instructions;
      for (const std::int32_t c : classes) step[at(c)].resize(list.size(), {-1, 0, 0});
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_run()) continue;
        const bool meets = list[i].phase() != Phase::kOptimizer;
        const Pace common = meets ? pace(classes, i, devices, random) : Pace{-1, 0, 0};
        for (const std::int32_t c : classes) {
          const Varying& run = runs_[at(c)][i];
          const double own = meets ? 0 : drawn(run, devices[at(c)], random[at(c)]);
          step[at(c)][i] = meets ? common : Pace{rank_of(c), own, own - run.ordinary};
        }
      }
    }
  }
  return out;
}

// Against the price, which has the slowest of those that meet.
StepDraws Sampler::delays(const Paces& paces) const {
  StepDraws out;
  for (const auto& step : paces) {
    auto& delays = out.seconds.emplace_back(runs_.size());
    for (std::size_t c = 0; c < runs_.size(); ++c) delays[c].resize(runs_[c].size(), 0);
    for (const std::vector<std::int32_t>& classes : meet_) {
      for (std::size_t i = 0; i < runs_[at(classes.front())].size(); ++i) {
        double priced = 0;
        for (const std::int32_t c : classes) priced = std::max(priced, runs_[at(c)][i].seconds);
        for (const std::int32_t c : classes) {
          const Pace& pace = step[at(c)][i];
          if (pace.rank < 0) continue;
          const Instruction& what = in_.costs.role(c).instructions[i];
          const bool meets = what.phase() != Phase::kOptimizer;
          delays[at(c)][i] = pace.seconds - (meets ? priced : runs_[at(c)][i].seconds);
        }
      }
    }
  }
  return out;
}

Sampler::Sample Sampler::sample(std::uint64_t stream) const {
  const Paces paces = draw(stream);
  const StepDraws draws = delays(paces);
  SimulationInput input = in_;
  input.draws = &draws;
  input.check = false;
  WorkloadBuilder builder(input, partner_);
  const std::vector<std::int32_t> whole(runs_.size(), 0);
  for (std::int32_t step = 0; step <= steps_; ++step) builder.add_step(whole);
  const auto simulation = builder.replay();
  Sample out;
  if (!simulation) {
    out.errors = simulation.error();
    return out;
  }
  return read(builder, *simulation, paces);
}

Sampler::Sample Sampler::read(const WorkloadBuilder& builder, const Simulation& simulation,
                              const Paces& paces) const {
  const PathOfTasks path(in_, builder.workload(), simulation);
  const StepEnd before = path.end_of_step(steps_ - 2), end = path.end_of_step(steps_ - 1);
  Sample out;
  out.seconds = sim::seconds(end.time - before.time).value();
  std::map<std::int32_t, double> costs;
  for (const RunOnPath& run : path.walk(end.task, before.time)) {
    const Pace& pace = paces[at(run.step)][at(run.rank_class)][at(run.instruction)];
    if (pace.rank >= 0) costs[pace.rank] += pace.excess;
  }
  out.costs.assign(costs.begin(), costs.end());
  return out;
}

// Adds up in the order of samples, whatever threads drew them.
StepSamples Sampler::summed(const std::vector<Sample>& samples) const {
  StepSamples out;
  out.count = static_cast<std::int64_t>(samples.size());
  out.seed = options_.seed;
  std::vector<double> times;
  std::map<std::int32_t, SampleShare> ranks, nodes, stages;
  const auto add = [](std::map<std::int32_t, SampleShare>& all, std::int32_t place, bool fresh,
                      double cost) {
    SampleShare& share = all.try_emplace(place, SampleShare{place, 0, {}}).first->second;
    share.samples += fresh ? 1 : 0;
    share.cost += Seconds(cost);
  };
  for (const Sample& one : samples) {
    times.push_back(one.seconds);
    out.mean += Seconds(one.seconds);
    std::map<std::int32_t, double> by_node, by_stage;
    for (const auto& [rank, cost] : one.costs) {
      add(ranks, rank, true, cost);
      const auto node = in_.scenario.cluster.node_of(DeviceId(rank));
      by_node[static_cast<std::int32_t>(node)] += cost;
      by_stage[static_cast<std::int32_t>(in_.grid.point(RankId(rank)).pp)] += cost;
    }
    for (const auto& [node, cost] : by_node) add(nodes, node, true, cost);
    for (const auto& [stage, cost] : by_stage) add(stages, stage, true, cost);
  }
  const auto count = static_cast<double>(samples.size());
  out.mean = out.mean / count;
  out.p5 = Seconds(quantile(times, 0.05));
  out.p50 = Seconds(quantile(times, 0.5));
  out.p95 = Seconds(quantile(times, 0.95));
  const auto listed = [&](const std::map<std::int32_t, SampleShare>& all) {
    std::vector<SampleShare> list;
    for (const auto& [place, share] : all) {
      list.push_back({place, share.samples, share.cost / count});
    }
    std::ranges::stable_sort(
        list, [](const SampleShare& a, const SampleShare& b) { return a.cost > b.cost; });
    return list;
  };
  out.ranks = listed(ranks);
  out.nodes = listed(nodes);
  out.stages = listed(stages);
  return out;
}

Result<StepSamples> Sampler::run() {
  auto partner = match_transfers(in_.program);
  if (!partner) return failure(partner.error());
  partner_ = std::move(*partner);
  double tasks = 0;
  for (const auto& runs : runs_) tasks += static_cast<double>(runs.size());
  tasks *= static_cast<double>((steps_ + 1) * options_.count);
  if (tasks > kMostTasks) {
    return failure({ErrorCode::kNotSupported,
                    fmt::format("{} samples of {} ranks are {:.1e} passes and messages",
                                options_.count, runs_.size(), tasks),
                    "", "--samples",
                    fmt::format("at most {:.0f} samples of this step",
                                std::max(1.0, std::floor(kMostTasks / tasks *
                                                         static_cast<double>(options_.count))))});
  }
  std::vector<Sample> samples(static_cast<std::size_t>(options_.count));
  run_in_parallel(options_.threads, samples.size(), [&](std::size_t, std::size_t i) {
    samples[i] = sample(static_cast<std::uint64_t>(i));
  });
  for (Sample& one : samples) {
    if (!one.errors.empty()) return failure(std::move(one.errors));
  }
  return summed(samples);
}

}  // namespace

Result<StepSamples> sample_steps(const SimulationInput& input, std::int32_t steps,
                                 const SampleOptions& options) {
  return Sampler(input, steps, options).run();
}

}  // namespace stepcast
