// SPDX-License-Identifier: Apache-2.0
// Measures what scenarios need: every operation of their programs as it runs among the others, with
// all ranks at work, then the transfers.
#include <fmt/format.h>

#include <set>

#include "calibrate/measure/collective_sampler.h"
#include "calibrate/measure/grid_sampler.h"
#include "calibrate/measure/heartbeats.h"
#include "calibrate/measure/host_collectives.h"
#include "calibrate/measure/host_memory_sampler.h"
#include "calibrate/measure/operation_sampler.h"
#include "calibrate/measure/rank_context.h"
#include "calibrate/protocol/journal.h"
#include "calibrate/protocol/machine_facts.h"
#include "calibrate/protocol/needed_grid.h"
#include "calibrate/protocol/operation_json.h"
#include "calibrate/protocol/processor_watch.h"
#include "comm/host_group.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/write_rows.h"
#include "execute/host_device.h"
#include "execute/role_runner.h"
#include "layout/scenario.h"
#include "operation/signature.h"
#include "program/executable.h"

namespace stepcast {
namespace {

// After this many steps an operation that runs once in a step has a sample.
constexpr std::int64_t kFewestSteps = 4;

Journal open_journal(const RankContext& rank) {
  const std::string folder = rank.job.journal.empty() ? rank.job.results : rank.job.journal;
  auto journal = Journal::open(fmt::format("{}/rank-{}.jsonl", folder, rank.world.rank()),
                               machine_identity(read_machine_facts({})));
  if (!journal) throw JobFailure(journal.error());
  return std::move(*journal);
}

class CalibrateJob {
 public:
  explicit CalibrateJob(const RankContext& rank) : rank_(rank), journal_(open_journal(rank)) {}

  void run() {
    for (const SortedJson& stated : rank_.job.scenarios) {
      const Scenario scenario = read_job_scenario(rank_.job, stated);
      if (const Errors errors = check_executable(scenario); !errors.empty()) {
        throw JobFailure(errors);
      }
      const Program program = lower(scenario);
      measure_operations(scenario, program);
      const NeededMeasurements own = needed(scenario, program, RankGrid(scenario.layout));
      HostCollectives transfers(rank_, scenario, program, own);
      CollectiveSampler(rank_.job, rank_.report, journal_, transfers).measure(collectives_);
      needed_.add(own);
    }
    if (rank_.job.grid) measure_grid();
    Json out = {{"rank", rank_.world.rank()},
                {"operations", std::move(operations_)},
                {"collectives", std::move(collectives_)}};
    if (rank_.world.rank() == 0) out["host_memory"] = json_of(host_memory());
    warn_of_others();  // the other ranks wait there for the first
    write_result(rank_.job, rank_.world.rank(), std::move(out));
  }

 private:
  HostMemory host_memory() {
    rank_.report.progress("host memory", 0, 1);
    return measure_host_memory([this] { rank_.report.heartbeat(); });
  }

  // Finished points go to the disk before the next step.
  void note(const OperationSampler& sampler, bool last) {
    for (const auto& [signature, point] : sampler.points()) {
      if (point.known || journal_.find(signature) != nullptr) continue;
      if (!point.sampler.enough() && !last) continue;
      const Measurement measured = point.sampler.result();
      if (measured.n == 0) {
        if (last) rank_.report.warning(fmt::format("{}: every sample was disturbed", signature));
        continue;
      }
      append(journal_, {signature, measured, operation_json(point.operation)});
    }
  }

  void measure_operations(const Scenario& scenario, const Program& program) {
    const RankGrid grid(scenario.layout);
    ExecutorOptions options;
    options.seed = rank_.job.seed;
    // A rank that shares cores and waits for a transfer finds its caches full of others' data;
    // kernels are timed by their own thread there, so that transfers add nothing else.
    HostGroup world(rank_.world);
    RoleRunner runner(scenario, program, grid, RankId(rank_.world.rank()),
                      rank_.job.shares_cores ? &world : nullptr, std::make_unique<HostDevice>(),
                      options);
    MeasurementProtocol protocol;
    protocol.target_half_width = rank_.job.target_half_width;
    protocol.budget_s = rank_.job.budget_s;
    protocol.warm_up_s = 0;
    OperationSampler sampler(protocol, rank_.job.shares_cores, [this](const std::string& key) {
      return journal_.find(key) != nullptr;
    });
    Heartbeats heartbeats(rank_.report, &sampler);
    runner.observe(&heartbeats);
    const Clock::time_point begin = Clock::now();
    std::int64_t steps = 0;
    for (bool more = true; more;) {
      runner.step();
      ++steps;
      note(sampler, false);
      rank_.report.progress("operations", static_cast<std::int64_t>(sampler.done()),
                            static_cast<std::int64_t>(sampler.size()));
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
      const bool over = on_any_rank(rank_, steps >= kFewestSteps && spent > rank_.job.budget_s);
      more = on_any_rank(rank_, !sampler.enough()) && !over;
    }
    note(sampler, true);
    for (const auto& [signature, point] : sampler.points()) {
      const JournalPoint* finished = journal_.find(signature);
      if (finished == nullptr || !reported_.insert(signature).second) continue;
      // A point of this run has more samples than the journal, which has it as it was when it
      // became precise enough.
      operations_.push_back(
          {{"operation", operation_json(point.operation)},
           {"measurement",
            measurement_json(point.known ? finished->measurement : point.sampler.result())}});
    }
  }

  // Samples that others disturb are thrown away one by one, but a machine that was busy all the
  // time was slower in every sample.
  void warn_of_others() {
    auto use = watch_.so_far();
    const bool known = !on_any_rank(rank_, !use);
    if (!known) return;
    use->own_s = over_all_ranks(rank_, use->own_s);
    if (rank_.world.rank() != 0 || !use->is_too_busy()) return;
    rank_.report.warning(fmt::format(
        "this machine was busy: other processes used {:.0f} % of its processors while it was "
        "measured, and the host of a virtual machine {:.0f} %; calibrate again when it is quiet",
        100 * use->others_fraction(), 100 * use->stolen_fraction()));
  }

  // Every rank measures all of them, under the same load as in the run; the median of the ranks
  // counts.
  void measure_grid() {
    MeasurementProtocol protocol;
    protocol.target_half_width = 2 * rank_.job.target_half_width;
    protocol.budget_s = 0.3;
    protocol.rejection.waiting = !rank_.job.shares_cores;
    const NeededMeasurements extra = grid(needed_);
    std::int64_t done = 0;
    for (const NeededKernel& kernel : extra.kernels) {
      rank_.report.progress("grid", done++, static_cast<std::int64_t>(extra.kernels.size()));
      const std::string key = signature(kernel.operation);
      if (!can_sample_alone(kernel.operation) || !reported_.insert(key).second) continue;
      if (journal_.find(key) == nullptr) {
        const auto measured = sample_alone(kernel.operation, protocol);
        if (!measured) continue;  // disturbed throughout: a point less between others
        append(journal_, {key, *measured, operation_json(kernel.operation)});
      }
      operations_.push_back({{"operation", operation_json(kernel.operation)},
                             {"measurement", measurement_json(journal_.find(key)->measurement)}});
    }
  }

  const RankContext& rank_;
  const ProcessorWatch watch_;  // from before the first step
  Journal journal_;
  NeededMeasurements needed_;
  std::set<std::string> reported_;
  Json operations_ = Json::array(), collectives_ = Json::array();
};

}  // namespace

void calibrate_job(const RankContext& rank) { CalibrateJob(rank).run(); }

}  // namespace stepcast
