// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/needed_shapes.h"

#include <algorithm>
#include <set>
#include <string>

#include "layout/scenario.h"
#include "operation/signature.h"
#include "program/run_key.h"
#include "program/walk.h"

namespace stepcast {
namespace {

// Collects what the roles of one program need.
class Collector {
 public:
  Collector(const Scenario& scenario, const Program& program, const RankGrid& grid)
      : scenario_(scenario), program_(program), grid_(grid) {}

  NeededMeasurements collect() {
    for (const Role& role : program_.roles) visit(role);
    out_.collectives.assign(collectives_.begin(), collectives_.end());
    out_.sends.assign(sends_.begin(), sends_.end());
    return std::move(out_);
  }

 private:
  void visit(const Role& role) {
    for (const Instruction& instruction : role.instructions) {
      if (const auto* call = instruction.as<CollectiveCall>()) {
        const bool on_compute = instruction.stream == Stream::kCompute;
        add({call->group, call->piece(), on_compute, {}, 1}, role.stage);
      } else if (const auto* send = instruction.as<Send>()) {
        add_send(role, *send);
      }
    }
    for (const CountedRun& run : distinct_runs(role)) {
      for_each_block(role, *run.first, [&](const BlockVisit& at) { visit(at, role.stage); });
    }
  }

  void visit(const BlockVisit& at, std::int32_t stage) {
    if (!visited_.insert({at.block, at.pass, stage}).second) return;
    for (const Operation& operation : operations_of(program_.block(at.block), at.pass)) {
      if (const auto* collective = std::get_if<Collective>(&operation.work)) {
        const bool on_compute = operation.stream == BlockStream::kCompute;
        add({collective->group, message_of(*collective), on_compute, {}, 1}, stage);
      } else if (runs_kernel(operation.work) && signatures_.insert(signature(operation)).second) {
        out_.kernels.push_back({operation, at.block});
      }
    }
  }

  // Adds the collective for every placement of the stage's groups.
  void add(NeededCollective collective, std::int32_t stage) {
    if (collective.message.bytes == 0 || grid_.group_size(collective.group) < 2) return;
    collective.concurrent = grid_.group_count(collective.group);
    std::set<std::int32_t> seen;
    for (std::int32_t r = 0; r < grid_.size(); ++r) {
      if (grid_.point(RankId(r)).pp != stage) continue;
      const std::int32_t group = grid_.group_of(collective.group, RankId(r));
      if (group < 0 || !seen.insert(group).second) continue;
      collective.placement.clear();
      for (const RankId member : grid_.members(collective.group, RankId(r))) {
        collective.placement.push_back(node_of(member));
      }
      collectives_.insert(collective);
    }
  }

  void add_send(const Role& role, const Send& send) {
    NeededSend out{{CollectiveKind::kSendReceive, send.bytes, send.type},
                   0,
                   0,
                   grid_.size() / static_cast<std::int64_t>(program_.roles.size())};
    for (std::int32_t r = 0; r < grid_.size(); ++r) {
      GridPoint point = grid_.point(RankId(r));
      if (point.pp != role.stage) continue;
      point.pp = send.peer;
      out.from = node_of(RankId(r));
      out.to = node_of(grid_.rank(point));
      sends_.insert(out);
    }
  }

  int node_of(RankId rank) const {
    return static_cast<int>(scenario_.cluster.node_of(DeviceId(rank.value)));
  }

  struct Visit {
    BlockId block;
    Pass pass;
    std::int32_t stage;
    auto operator<=>(const Visit&) const = default;
  };

  const Scenario& scenario_;
  const Program& program_;
  const RankGrid& grid_;
  std::set<Visit> visited_;
  std::set<std::string> signatures_;
  std::set<NeededCollective> collectives_;
  std::set<NeededSend> sends_;
  NeededMeasurements out_;
};

template <class Value>
void merge(std::vector<Value>& into, const std::vector<Value>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

void NeededMeasurements::add(const NeededMeasurements& more) {
  std::set<std::string> seen;
  for (const NeededKernel& kernel : kernels) seen.insert(signature(kernel.operation));
  for (const NeededKernel& kernel : more.kernels) {
    if (!seen.insert(signature(kernel.operation)).second) continue;
    const Operation& operation = kernel.operation;
    kernels.push_back({{operation.name, operation.phase, operation.work, {}, {}}, BlockId()});
  }
  merge(collectives, more.collectives);
  merge(sends, more.sends);
}

NeededMeasurements needed(const Scenario& scenario, const Program& program, const RankGrid& grid) {
  return Collector(scenario, program, grid).collect();
}

}  // namespace stepcast
