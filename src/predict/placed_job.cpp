// SPDX-License-Identifier: Apache-2.0
#include "predict/placed_job.h"

#include <algorithm>
#include <map>
#include <utility>

#include "layout/scenario.h"
#include "predict/budget.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/shared_links.h"
#include "predict/timed_orders.h"
#include "program/block_groups.h"

namespace stepcast {
namespace {

// One class for the rank, in no group and on no link.
Symmetry class_of_one(RankId rank, const RankGrid& grid) {
  Symmetry out;
  out.class_of_rank.assign(static_cast<std::size_t>(grid.size()), 0);
  out.ranks = {{rank}};
  return out;
}

}  // namespace

Result<std::unique_ptr<PlacedJob>> PlacedJob::make(const Scenario& scenario, const Pricing& pricing,
                                                   const PredictOptions& options) {
  const auto affordable = afford_program(scenario);
  if (!affordable) return failure(affordable.error());
  return std::unique_ptr<PlacedJob>(new PlacedJob(scenario, pricing, options, *affordable));
}

PlacedJob::PlacedJob(const Scenario& scenario, const Pricing& pricing,
                     const PredictOptions& options, ByteCount held)
    : scenario_(scenario),
      pricing_(pricing),
      options_(options),
      held_(held),
      grid_(scenario.layout),
      program_(lower(scenario, timed_orders(scenario, pricing))),
      traffic_{{grid_.size(), 0}, {}, {}} {}

Traffic PlacedJob::placed() const {
  if (options_.alone) return {{grid_.size(), 0}, {}, {}};
  return place_traffic(scenario_, program_, grid_, pricing_.collectives, stamps_,
                       options_.fold ? pricing_.units : RepeatedUnits{});
}

void PlacedJob::place(const std::vector<double>& foreign) {
  stamps_.clear();
  traffic_ = placed();
  stamps_ = find_stamps(scenario_, program_, grid_, traffic_, pricing_, foreign);
  if (!stamps_.empty()) traffic_ = placed();
}

std::vector<double> PlacedJob::demand() const {
  std::vector<double> out(scenario_.cluster.topology.links().size(), 0);
  for (const GroupTraffic& groups : traffic_.groups) {
    for (const GroupOrbit& orbit : groups.orbits) {
      const std::vector<DeviceId> devices = devices_of(orbit.members);
      std::map<LinkId, double> most;  // a group sends one message at a time
      for (const auto& [way, price] : groups.fastest(orbit, groups.messages)) {
        for (const LinkLoad& load : pricing_.collectives.loads(price, way.kind, devices)) {
          double& own = most[load.link];
          own = std::max(own, load.weight * price.rate_bound.value());
        }
      }
      for (const auto& [link, rate] : most) out[link.index()] += rate;
    }
  }
  for (const PairTraffic& pairs : traffic_.pairs) {
    for (const PairOrbit& pair : pairs.orbits) {
      for (const LinkLoad& load : pair.loads) {
        out[load.link.index()] += load.weight * pair.price.rate_bound.value();
      }
    }
  }
  return out;
}

void PlacedJob::fold(const ForeignLinks& foreign) {
  symmetry_ = options_.alone ? class_of_one(*options_.alone, grid_)
                             : find_symmetry(scenario_, grid_, traffic_, pricing_.collectives,
                                             options_.fold, foreign);
}

// A collective inside a pass leaves a part of a rank's core to other ranks and streams. One macro
// activity of kernels and collectives cannot express that.
bool PlacedJob::must_expand() const {
  if (!scenario_.cluster.spec.accelerator.is_cpu() || options_.alone) return false;
  return std::ranges::any_of(groups_in_blocks(program_),
                             [&](AxisGroup group) { return grid_.group_size(group) > 1; });
}

void PlacedJob::price() {
  const bool alone = options_.alone.has_value();
  const SendsInPasses sends = alone                 ? SendsInPasses::kNothing
                              : options_.contention ? SendsInPasses::kBesideSiblings
                                                    : SendsInPasses::kApart;
  costs_.emplace(scenario_, program_, grid_, symmetry_, pricing_.kernels, pricing_.collectives,
                 sends);
  const Profile& profile = pricing_.kernels.profile();
  input_.reset(new SimulationInput{scenario_, program_, grid_, traffic_, symmetry_, *costs_,
                                   profile.host[scenario_.training.framework],
                                   options_.expand || must_expand(), options_.contention, alone,
                                   profile.sms_per_channel, stamps_, profile.host_memory,
                                   options_.check});
}

namespace {

// Sums what the jobs but one send, and the classes in which they see links.
ForeignLinks links_of_others(const std::vector<PlacedJob*>& jobs,
                             const std::vector<std::vector<double>>& demands, std::size_t but) {
  ForeignLinks out{std::vector<double>(demands.front().size(), 0),
                   std::vector<std::int32_t>(demands.front().size(), -1)};
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (j == but) continue;
    const std::vector<std::int32_t>& classes = jobs[j]->symmetry().class_of_link;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> both;
    for (std::size_t l = 0; l < out.demand.size(); ++l) {
      out.demand[l] += demands[j][l];
      const std::int32_t own = classes.empty() ? -1 : classes[l];
      if (own < 0 && out.classes[l] < 0) continue;
      const auto next = static_cast<std::int32_t>(both.size());
      out.classes[l] = both.try_emplace({out.classes[l], own}, next).first->second;
    }
  }
  return out;
}

std::size_t classes_of(const std::vector<PlacedJob*>& jobs) {
  std::size_t out = 0;
  for (const PlacedJob* job : jobs) {
    out += job->symmetry().ranks.size() + job->symmetry().link_capacity.size();
  }
  return out;
}

}  // namespace

void fold_together(const std::vector<PlacedJob*>& jobs) {
  std::vector<std::vector<double>> demands;
  for (PlacedJob* job : jobs) job->place();
  for (const PlacedJob* job : jobs) demands.push_back(job->demand());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    jobs[j]->place(links_of_others(jobs, demands, j).demand);
  }
  // Each round splits classes further, until all jobs agree.
  for (std::size_t before = 0;;) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      end_if_stopped();
      jobs[j]->fold(links_of_others(jobs, demands, j));
    }
    const std::size_t now = classes_of(jobs);
    if (now == before) return;
    before = now;
  }
}

}  // namespace stepcast
