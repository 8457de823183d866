// SPDX-License-Identifier: Apache-2.0
#include "worker/run_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "calibrate/measure/heartbeats.h"
#include "calibrate/protocol/processor_watch.h"
#include "core/statistics.h"
#include "execute/whole_model.h"
#include "layout/scenario.h"
#include "program/executable.h"
#include "program/reference_scenario.h"
#include "worker/operation_times.h"

namespace stepcast {
namespace {

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

class RunJob {
 public:
  explicit RunJob(const RunPlace& place)
      : place_(place),
        scenario_(read_job_scenario(place.job, place.job.scenario.value())),
        program_(lower(scenario_)),
        grid_(scenario_.layout),
        limits_(numerics_limits(scenario_.training.precision)) {
    if (const Errors errors = check_executable(scenario_, place.job.backend); !errors.empty()) {
      throw JobFailure(errors);
    }
    const std::int64_t ranks = place.world == nullptr ? 1 : place.world->size();
    if (!place.job.rank && grid_.size() != ranks) {
      throw JobFailure(RankFailure::kInput,
                       fmt::format("the layout has {} ranks, the launch {}", grid_.size(), ranks));
    }
    if (place.rank.value >= grid_.size()) {
      throw JobFailure(RankFailure::kInput, fmt::format("the layout has {} ranks, there is no {}",
                                                        grid_.size(), place.rank.value));
    }
  }

  void run();

 private:
  std::string reference_file() const { return place_.job.results + "/reference.bin"; }
  void make_reference();
  void check_numerics(RoleRunner& runner);
  double mean_loss(const RoleRunner& runner, const StepRecord& record) const;
  [[noreturn]] void fail_numerics(const std::string& what, double limit) const;
  static MeasuredStep measured(const StepRecord& step);
  std::vector<OperationTime> operations(const OperationTimes& times) const;

  RoleRunner reference_runner(const Scenario& scenario, const Program& program,
                              const RankGrid& grid) const {
    const auto& device = place_.reference_device ? place_.reference_device : place_.device;
    return {scenario, program, grid, RankId(0), nullptr, device(), options()};
  }
  // One rank spreads rows over experts as the layout does.
  ExecutorOptions options() const {
    ExecutorOptions out;
    out.seed = place_.job.seed;
    out.alive = [this] { place_.report.heartbeat(); };  // billions of weights take minutes
    if (scenario_.model.moe) out.spread = spread_of(scenario_);
    return out;
  }
  float over_ranks(float value, Reduction reduction) const {
    place_.all_reduce({&value, 1}, reduction);
    return value;
  }
  void barrier() const { over_ranks(0, Reduction::kSum); }
  void set_time_limit(std::chrono::milliseconds limit) const {
    if (place_.world != nullptr) place_.world->set_time_limit(limit);
  }
  void measure_steps(RoleRunner& runner, OperationTimes& times);

  const RunPlace& place_;
  Scenario scenario_;
  Program program_;
  RankGrid grid_;
  NumericsLimits limits_;
  std::vector<double> reference_losses_;
  double loss_error_ = 0;
  std::optional<double> parameter_error_;
  std::vector<StepRecord> steps_;
  std::optional<ProcessorUse> processors_;  // while steps were measured
};

// Rank 0 trains alone while the others wait.
void RunJob::make_reference() {
  const auto count = static_cast<std::size_t>(place_.job.numerics_steps);
  std::vector<float> losses(count, 0);
  set_time_limit(std::chrono::hours(1));
  if (place_.rank.value == 0) {
    const Scenario scenario =
        read_job_scenario(place_.job, reference_scenario(*place_.job.scenario));
    const Program program = lower(scenario);
    const RankGrid grid(scenario.layout);
    RoleRunner alone = reference_runner(scenario, program, grid);
    Heartbeats alive(place_.report, nullptr);
    alone.observe(&alive);
    const double tokens = static_cast<double>(scenario.training.global_batch) *
                          static_cast<double>(scenario.training.sequence_length);
    for (std::size_t s = 0; s < count; ++s) {
      place_.report.progress("reference", static_cast<std::int64_t>(s), place_.job.numerics_steps,
                             "one rank");
      losses[s] = static_cast<float>(alone.step().loss_sum / tokens);
    }
    if (limits_.parameters) {
      WholeModel model;
      model.take(alone);
      model.save(reference_file());
    }
  }
  place_.all_reduce(losses, Reduction::kSum);  // the others' are 0
  set_time_limit(place_.patience);
  reference_losses_.assign(losses.begin(), losses.end());
}

double RunJob::mean_loss(const RoleRunner& runner, const StepRecord& record) const {
  const double tokens = static_cast<double>(scenario_.training.global_batch) *
                        static_cast<double>(scenario_.training.sequence_length);
  const double own = runner.point().tp == 0 ? record.loss_sum / tokens : 0;
  return over_ranks(static_cast<float>(own), Reduction::kSum);
}

void RunJob::check_numerics(RoleRunner& runner) {
  for (std::size_t s = 0; s < reference_losses_.size(); ++s) {
    const double loss = mean_loss(runner, runner.step());
    place_.report.progress("numerics", static_cast<std::int64_t>(s), place_.job.numerics_steps);
    const double error = std::abs(loss / reference_losses_[s] - 1);
    loss_error_ = std::isfinite(error) ? std::max(loss_error_, error)
                                       : std::numeric_limits<double>::infinity();
  }
  if (!(loss_error_ <= limits_.loss)) {
    fail_numerics(fmt::format("losses differ from one rank's by {:.2g}", loss_error_),
                  limits_.loss);
  }
  if (!limits_.parameters) return;
  const WholeModel reference = WholeModel::load(reference_file());
  const auto own = static_cast<float>(WholeModel::relative_error(runner, reference));
  parameter_error_ = over_ranks(own, Reduction::kMaximum);
  if (!(*parameter_error_ <= *limits_.parameters)) {
    fail_numerics(fmt::format("parameters differ from one rank's by {:.2g}", *parameter_error_),
                  *limits_.parameters);
  }
}

void RunJob::fail_numerics(const std::string& what, double limit) const {
  throw JobFailure(RankFailure::kNumerics,
                   fmt::format("{} (relative); at most {:.0e} is rounding", what, limit));
}

MeasuredStep RunJob::measured(const StepRecord& step) {
  const double begin = seconds_of(step.begin);
  MeasuredStep out{begin, begin + step.seconds, step.loss_sum, {}};
  for (const InstructionSpan& span : step.spans) {
    out.spans.push_back({begin + span.start, begin + span.end});
  }
  return out;
}

std::vector<OperationTime> RunJob::operations(const OperationTimes& times) const {
  std::vector<OperationTime> out;
  const double steps = static_cast<double>(place_.job.steps);
  for (const auto& [key, entry] : times.entries()) {
    const auto& [signature, name, phase] = key;
    OperationTime& one = out.emplace_back();
    one.signature = signature;
    one.name = name;
    one.phase = phase;
    one.calls_per_step = static_cast<double>(entry.seconds.size()) / steps;
    one.median = Seconds(median(entry.seconds));
    one.total = Seconds(std::accumulate(entry.seconds.begin(), entry.seconds.end(), 0.0) / steps);
    if (const auto* collective = std::get_if<Collective>(&entry.operation->work)) {
      one.group = collective->group;
      one.exposed = Seconds(entry.exposed_s / steps);
    }
  }
  return out;
}

void RunJob::measure_steps(RoleRunner& runner, OperationTimes& times) {
  Heartbeats alive(place_.report, nullptr), alive_and_timed(place_.report, &times);
  const auto timed_step = [&] {
    runner.observe(&alive_and_timed);
    const StepRecord record = runner.step();
    times.end_step();
    return record;
  };
  barrier();
  const ProcessorWatch watch;
  for (std::int64_t s = 0; s < place_.job.steps; ++s) {
    place_.report.progress("steps", s, place_.job.steps);
    if (!place_.marks_apart) {
      steps_.push_back(timed_step());
      continue;
    }
    runner.observe(&alive);
    steps_.push_back(runner.step());
  }
  processors_ = watch.so_far();
  for (std::int64_t s = 0; place_.marks_apart && s < place_.job.steps; ++s) {
    place_.report.progress("operations", s, place_.job.steps);
    timed_step();
  }
  barrier();
}

void RunJob::run() {
  const bool checks = place_.job.checks_numerics();
  if (checks) make_reference();
  RoleRunner own(scenario_, program_, grid_, place_.rank, place_.world, place_.device(), options());
  OperationTimes times(own.device());
  Heartbeats alive(place_.report, nullptr);
  own.observe(&alive);
  if (checks) check_numerics(own);
  for (std::int64_t s = 0; s < place_.job.warmup; ++s) {
    place_.report.progress("warm-up", s, place_.job.warmup);
    own.step();
  }
  measure_steps(own, times);
  const MemoryParts peak = own.ledger().at_peak();
  RankFile result;
  result.rank = place_.rank;
  result.host = place_.host;
  result.stage = own.role().stage;
  result.tp = own.point().tp;
  result.dp = own.point().dp;
  for (const StepRecord& step : steps_) result.steps.push_back(measured(step));
  result.operations = operations(times);
  result.peak_memory = total(peak);
  result.memory = peak;
  result.processors = processors_;
  if (place_.add_facts) place_.add_facts(own.device(), result);
  if (checks) result.numerics = Numerics{loss_error_, parameter_error_};
  write_result(place_.job, place_.rank.value, rank_file_json(result));
}

}  // namespace

void run_job(const RunPlace& place) { RunJob(place).run(); }

}  // namespace stepcast
