// SPDX-License-Identifier: Apache-2.0
// Measures what scenarios need: every operation of their programs as it runs among the others, with
// all ranks at work and transfers left out, then the transfers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibrate/measurement_json.h"
#include "calibrate/operation_json.h"
#include "cluster/this_machine.h"
#include "execute/role_runner.h"
#include "program/executable.h"
#include "worker/collective_sampler.h"
#include "worker/job.h"
#include "worker/operation_sampler.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

class CalibrateJob {
 public:
  explicit CalibrateJob(const RankContext& rank) : rank_(rank) {}

  void run() {
    for (const std::string& text : rank_.job.scenarios) {
      const Scenario scenario = read_job_scenario(rank_.job, text);
      if (const Errors errors = check_executable(scenario); !errors.empty()) {
        throw JobFailure(RankFailure::kInput, to_string(errors));
      }
      measure_operations(scenario);
      const Program program = lower(scenario);
      CollectiveSampler(rank_, scenario, program).measure(collectives_);
    }
    write_result(rank_, {{"rank", rank_.world.rank()},
                         {"operations", std::move(operations_)},
                         {"collectives", std::move(collectives_)}});
  }

 private:
  bool all_enough(const OperationSampler& sampler) {
    float missing = sampler.enough() ? 0.0F : 1.0F;
    rank_.world.all_reduce({&missing, 1}, Reduction::kMaximum);
    return missing == 0;
  }

  void measure_operations(const Scenario& scenario) {
    const Program program = lower(scenario);
    const RankGrid grid(scenario.layout);
    ExecutorOptions options;
    options.seed = rank_.job.seed;
    options.communicate = false;
    RoleRunner runner(scenario, program, grid, RankId(rank_.world.rank()), nullptr, options);
    MeasurementProtocol protocol;
    protocol.target_half_width = rank_.job.target_half_width;
    protocol.budget_s = rank_.job.budget_s;
    protocol.warm_up_s = 0;
    runner.step();  // fresh pages, first touches
    OperationSampler sampler(protocol, rank_.world.size() > this_machine().cores);
    runner.observe(&sampler);
    const Clock::time_point begin = Clock::now();
    for (bool enough = false; !enough;) {
      runner.step();
      rank_.report.progress("operations", static_cast<std::int64_t>(sampler.done()),
                            static_cast<std::int64_t>(sampler.size()));
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
      float over = spent > rank_.job.budget_s ? 1.0F : 0.0F;
      rank_.world.all_reduce({&over, 1}, Reduction::kMaximum);
      enough = all_enough(sampler) || over > 0;
    }
    for (const auto& [signature, point] : sampler.points()) {
      const Measurement measured = point.sampler.result();
      if (measured.n == 0) {
        rank_.report.warning(fmt::format("{}: every sample was disturbed", signature));
        continue;
      }
      operations_.push_back({{"operation", operation_json(point.operation)},
                             {"measurement", measurement_json(measured)}});
    }
  }

  const RankContext& rank_;
  ordered_json operations_ = ordered_json::array(), collectives_ = ordered_json::array();
};

}  // namespace

void calibrate_job(const RankContext& rank) { CalibrateJob(rank).run(); }

}  // namespace stepcast
