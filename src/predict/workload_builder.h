// SPDX-License-Identifier: Apache-2.0
// Steps of a program as a workload of the engine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predict/host_plan.h"
#include "predict/meetings.h"
#include "predict/simulation.h"
#include "predict/transfer_shapes.h"

namespace stepcast {

// A workload of several jobs, which meet on links.
struct SharedWorkload {
  sim::Workload workload;
  std::map<LinkId, sim::ResourceId> links;  // by the lowest of each class
};

// Writes steps into a workload: rank class by rank class, each in the order of its instructions.
class WorkloadBuilder {
 public:
  // `partner`: see match_transfers(). `shared`: the jobs that write into it see links alike.
  WorkloadBuilder(const SimulationInput& input,
                  const std::vector<std::vector<std::int32_t>>& partner,
                  SharedWorkload* shared = nullptr);

  std::vector<std::int32_t> barrier() { return find_barrier(in_); }
  // `begin`, by class: the first instruction.
  void add_step(const std::vector<std::int32_t>& begin);
  // Ends the building: the steps go into the result.
  Result<Simulation> replay();
  // The steps, with a replay of the shared workload.
  Simulation take(sim::Replay replay);
  std::string describe(sim::TaskId task) const;
  const sim::Workload& workload() const { return workload_; }

 private:
  using StepTasks = std::vector<std::vector<InstructionTasks>>;
  // A task whose members are placed as their rank classes come to it.
  struct Seats {
    sim::TaskId task;
    std::int32_t placed = 0;
  };

  std::int32_t classes() const { return static_cast<std::int32_t>(in_.symmetry.ranks.size()); }
  sim::StreamId stream(std::int32_t c, Stream s) const {
    return sim::StreamId(first_stream_ + c * kStreams + static_cast<std::int32_t>(s));
  }
  sim::ResourceId processor(std::int32_t c) const {
    return processors_[static_cast<std::size_t>(c)];
  }
  InstructionTasks& tasks(std::int32_t c, std::int32_t i) {
    return steps_.back()[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)];
  }

  const HostPlan& plan(std::int32_t c) const {
    return plans_[plan_of_[static_cast<std::size_t>(c)]];
  }

  void add_resources();
  void plan_hosts();
  bool shares_processor(std::int32_t c) const;
  void use_processor(std::int32_t c, double part);
  void reserve_step();
  void add_class(std::int32_t c, std::int32_t begin);
  sim::TaskId add_host(std::int32_t c, sim::Duration latency);
  void add_host_task(std::int32_t c, const HostTask& host);
  void add_run(std::int32_t c, std::int32_t i, const Instruction& what);
  void add_pass(std::int32_t c, std::int32_t i, bool has_issue);
  sim::TaskId add_kernel(std::int32_t c, Stream s, sim::TaskId issuer, const RunCost& cost);
  RunCost as_drawn(std::int32_t c, std::int32_t i, const RunCost& whole, const RunCost& part) const;
  sim::TaskId add_run_as_issued(std::int32_t c, const RunCost& cost);
  std::int32_t add_transfer(std::int32_t c, std::int32_t i, const Instruction& what);
  sim::TaskId open_seats(const TransferShape& shape);
  Seat meet(const TransferShape& shape);  // the next meeting of the class at hand
  void add_waits(std::int32_t c, std::int32_t i, const Instruction& what, std::int32_t member);
  sim::TaskId end_of_step_before(std::int32_t c) const;

  const SimulationInput& in_;
  const std::vector<std::vector<std::int32_t>>& partner_;
  TransferShapes shapes_;
  std::vector<HostPlan> plans_;
  std::vector<std::size_t> plan_of_;  // by class
  sim::Workload own_;
  SharedWorkload* shared_;
  sim::Workload& workload_;  // own_, or that of several jobs
  std::int32_t first_stream_ = 0;
  std::vector<sim::ResourceId> links_;
  std::size_t reserved_ = 0;  // tasks that there is room for
  std::vector<sim::ResourceId> processors_;  // by class; invalid where nothing overlaps compute
  sim::ResourceId cores_;                    // of the machine; invalid where each rank has its own
  bool on_cpu_;                              // ranks are processes on cores, not GPUs
  std::vector<StepTasks> steps_;
  std::vector<std::vector<PartTasks>> parts_;    // Simulation::parts
  std::vector<std::vector<Seats>> collectives_;  // of this step, by meeting, in order of issue
  std::vector<std::int32_t> met_;                // by meeting: how many this class came to
  std::vector<sim::TaskId> host_tasks_;          // of this class and step, by HostPlan::tasks
  std::vector<sim::MemberSpec> seats_;
  std::vector<sim::Use> uses_;
};

}  // namespace stepcast
