// SPDX-License-Identifier: Apache-2.0
#include "predict/outer_step.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "predict/pricing.h"
#include "program/program.h"

namespace stepcast {
namespace {

// The outer update reads parameters, their old copy, the momentum and the mean gradient, and writes
// three of these: in fp32.
constexpr double kOuterUpdateBytes = 7 * 4;

class OuterMeeting {
 public:
  OuterMeeting(const Scenario& scenario, const Program& program, const RankGrid& grid,
               const Pricing& pricing)
      : scenario_(scenario),
        outer_(scenario.training.outer),
        program_(program),
        grid_(grid),
        pricing_(pricing) {}

  OuterStep price(Seconds inner_step) {
    OuterStep out;
    out.islands = outer_.islands;
    out.inner_step = inner_step;
    out.message = message(out) + gather();
    out.update = update();
    const double fragments = static_cast<double>(outer_.fragments);
    const Seconds behind = static_cast<double>(outer_.overlap_steps) * inner_step;
    out.exposed = fragments * std::max(Seconds(), out.message - behind);
    if (behind.value() > 0) out.to_hide = out.sent / fragments / behind;
    return out;
  }

 private:
  const Role& role(std::int64_t rank) const {
    return program_
        .roles[static_cast<std::size_t>(grid_.point(RankId(static_cast<std::size_t>(rank))).pp)];
  }

  // For a fragment; the ranks of an island that hold the same parameters send a part each.
  ByteCount sent_by(const Role& role) const {
    std::int64_t elements = 0;
    for (const FlatStretch& stretch : role.stretches) {
      const std::int64_t parts = size_of(stretch.group, scenario_.layout) * outer_.fragments;
      elements += (stretch.range.size() + parts - 1) / parts;
    }
    return (elements * outer_.bits() + 7) / 8;
  }

  // All ranks of an island meet those in their places of the others at once. Every group takes its
  // own time, and a link as long as it needs for the bytes of all of them.
  Seconds message(OuterStep& out) {
    const CollectiveCosts& costs = *pricing_.between;
    const double islands = static_cast<double>(outer_.islands);
    Seconds latency, moving;
    double sent = 0;
    std::map<LinkId, double> bytes;
    for (std::int64_t rank = 0; rank < grid_.size(); ++rank) {
      const ByteCount size = sent_by(role(rank));
      if (size == 0) continue;
      std::vector<DeviceId> members;
      for (std::int64_t island = 0; island < outer_.islands; ++island) {
        members.emplace_back(static_cast<std::size_t>(island * grid_.size() + rank));
      }
      const CollectivePrice price = priced(size, members);
      latency = std::max(latency, price.latency);
      moving = std::max(moving, price.work / price.rate_bound);
      sent += static_cast<double>(size);
      for (const LinkLoad& load : costs.loads(price, CollectiveKind::kAllReduce, members)) {
        bytes[load.link] += load.weight * price.work.value();
      }
    }
    out.sent = Bytes(sent * static_cast<double>(outer_.fragments) * 2 * (islands - 1) / islands);
    const Topology& topology = scenario_.all_islands->topology;
    Seconds fullest;
    for (const auto& [link, carried] : bytes) {
      const Seconds busy = Bytes(carried) / topology.links()[link.index()].capacity;
      if (!(busy > fullest)) continue;
      fullest = busy;
      out.bound_by = topology.name(link);
    }
    const Seconds whole = latency + std::max(moving, fullest);
    out.full = whole.value() > 0 ? fullest / whole : 0;
    if (fullest < moving) out.bound_by.clear();
    return whole;
  }

  CollectivePrice priced(ByteCount size, const std::vector<DeviceId>& members) {
    const DataType type = outer_.bits() == 32 ? DataType::kFp32 : DataType::kBf16;
    const auto make = [&] {
      return pricing_.between->price(CollectiveKind::kAllReduce, size, type, members);
    };
    const auto shape = pricing_.between->shape(members);
    if (!shape) return make();
    const auto known = prices_.find({size, *shape});
    if (known != prices_.end()) return known->second;
    return prices_.emplace(std::pair(size, *shape), make()).first->second;
  }

  // Ranks that hold all of what they sent parts of get the rest from each other.
  Seconds gather() const {
    Seconds longest;
    for (const Role& own : program_.roles) {
      const RankId first = grid_.rank({0, 0, 0, own.stage});
      Seconds all;
      for (const FlatStretch& stretch : own.stretches) {
        const std::int64_t held =
            optimizer_elements(scenario_, stretch.range.size(), stretch.group);
        const std::int64_t ranks = size_of(stretch.group, scenario_.layout);
        if (ranks < 2 || held * ranks < 2 * stretch.range.size()) continue;
        std::vector<DeviceId> members;
        for (const RankId member : grid_.members(stretch.group, first)) {
          members.emplace_back(member.value);
        }
        all += pricing_.collectives
                   .price(CollectiveKind::kAllGather, 4 * held / outer_.fragments, DataType::kFp32,
                          members)
                   .time();
      }
      longest = std::max(longest, all);
    }
    return longest;
  }

  Seconds update() const {
    std::int64_t most = 0;
    for (const Role& one : program_.roles) {
      std::int64_t elements = 0;
      for (const FlatStretch& stretch : one.stretches) {
        elements += optimizer_elements(scenario_, stretch.range.size(), stretch.group);
      }
      most = std::max(most, elements);
    }
    const Bytes moved(kOuterUpdateBytes * static_cast<double>(most));
    const ClusterSpec& spec = scenario_.cluster.spec;
    if (!outer_.host) return moved / spec.accelerator.memory_bandwidth;
    // Parameters go down and come back, and the ranks of a node share its memory.
    const Bytes copied(4.0 * static_cast<double>(most));
    const double ranks = static_cast<double>(std::min(spec.gpus, spec.gpus_per_node));
    return 2.0 * (copied / spec.pcie_bandwidth) + ranks * (moved / host_of(spec).memory_bandwidth);
  }

  const Scenario& scenario_;
  const OuterSteps& outer_;
  const Program& program_;
  const RankGrid& grid_;
  const Pricing& pricing_;
  std::map<std::pair<ByteCount, GroupShape>, CollectivePrice> prices_;
};

}  // namespace

OuterStep outer_step(const Scenario& scenario, const Program& program, const RankGrid& grid,
                     const Pricing& pricing, Seconds inner_step) {
  return OuterMeeting(scenario, program, grid, pricing).price(inner_step);
}

}  // namespace stepcast
