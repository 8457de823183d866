// SPDX-License-Identifier: Apache-2.0
// Trains a scenario for real: first a few steps whose losses and parameters are held against one
// rank, then warm-up, then the measured steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "comm/host_group.h"
#include "execute/host_device.h"
#include "execute/whole_model.h"
#include "program/executable.h"
#include "worker/heartbeats.h"
#include "worker/operation_times.h"
#include "worker/rank_context.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// The same model on the same batch by one rank, as plain as can be.
std::string single_rank_text(const std::string& text) {
  auto scenario = nlohmann::json::parse(text);
  scenario["cluster"] = {{"base", "local"}, {"gpus", 1}};
  scenario["layout"] = {{"micro_batch", 1}};
  for (const char* key :
       {"bucket_elements", "gather_bucket_elements", "prefetch_units", "host_sync_after_p2p",
        "fused_gradient_accumulation", "scatter_gather_p2p", "no_sync", "attention"}) {
    scenario["training"].erase(key);
  }
  scenario["training"]["framework"] = "native";
  scenario.erase("profile");
  return scenario.dump();
}

class RunJob {
 public:
  explicit RunJob(const RankContext& rank)
      : rank_(rank),
        scenario_(read_job_scenario(rank.job, rank.job.scenarios.front())),
        program_(lower(scenario_)),
        grid_(scenario_.layout) {
    if (const Errors errors = check_executable(scenario_); !errors.empty()) {
      throw JobFailure(RankFailure::kInput, to_string(errors));
    }
    if (grid_.size() != rank.world.size()) {
      throw JobFailure(RankFailure::kInput, fmt::format("the layout has {} ranks, the launch {}",
                                                        grid_.size(), rank.world.size()));
    }
  }

  void run();

 private:
  std::string reference_file() const { return rank_.job.results + "/reference.bin"; }
  void make_reference();
  void check_numerics(RoleRunner& runner);
  double mean_loss(const RoleRunner& runner, const StepRecord& record);
  ordered_json steps_json() const;
  ordered_json operations_json(const OperationTimes& times) const;

  const RankContext& rank_;
  Scenario scenario_;
  Program program_;
  RankGrid grid_;
  std::vector<double> reference_losses_;
  double loss_error_ = 0, parameter_error_ = 0;
  struct Step {
    Clock::time_point begin, end;
    StepRecord record;
  };
  std::vector<Step> steps_;
};

// Rank 0 trains alone while the others wait.
void RunJob::make_reference() {
  const auto count = static_cast<std::size_t>(rank_.job.numerics_steps);
  std::vector<float> losses(count, 0);
  if (rank_.world.rank() == 0) {
    const Scenario scenario =
        read_job_scenario(rank_.job, single_rank_text(rank_.job.scenarios.front()));
    const Program program = lower(scenario);
    const RankGrid grid(scenario.layout);
    RoleRunner runner(scenario, program, grid, RankId(0), nullptr, std::make_unique<HostDevice>(),
                      {rank_.job.seed});
    Heartbeats alive(rank_.report, nullptr);
    runner.observe(&alive);
    const double tokens = static_cast<double>(scenario.training.global_batch) *
                          static_cast<double>(scenario.training.sequence_length);
    for (std::size_t s = 0; s < count; ++s) {
      rank_.report.progress("reference", static_cast<std::int64_t>(s), rank_.job.numerics_steps,
                            "one rank");
      losses[s] = static_cast<float>(runner.step().loss_sum / tokens);
    }
    WholeModel model;
    model.take(runner);
    model.save(reference_file());
  }
  rank_.world.set_time_limit(std::chrono::hours(1));
  rank_.world.broadcast(losses, 0);
  rank_.world.set_time_limit(std::chrono::seconds(60));
  reference_losses_.assign(losses.begin(), losses.end());
}

double RunJob::mean_loss(const RoleRunner& runner, const StepRecord& record) {
  const double tokens = static_cast<double>(scenario_.training.global_batch) *
                        static_cast<double>(scenario_.training.sequence_length);
  auto loss = static_cast<float>(runner.point().tp == 0 ? record.loss_sum / tokens : 0);
  rank_.world.all_reduce({&loss, 1});
  return loss;
}

void RunJob::check_numerics(RoleRunner& runner) {
  for (std::size_t s = 0; s < reference_losses_.size(); ++s) {
    const double loss = mean_loss(runner, runner.step());
    rank_.report.progress("numerics", static_cast<std::int64_t>(s), rank_.job.numerics_steps);
    const double error = std::abs(loss / reference_losses_[s] - 1);
    loss_error_ = std::isfinite(error) ? std::max(loss_error_, error)
                                       : std::numeric_limits<double>::infinity();
  }
  const WholeModel reference = WholeModel::load(reference_file());
  auto worst = static_cast<float>(WholeModel::relative_error(runner, reference));
  rank_.world.all_reduce({&worst, 1}, Reduction::kMaximum);
  parameter_error_ = worst;
  if (!(loss_error_ <= kNumericsLimit && parameter_error_ <= kNumericsLimit)) {
    throw JobFailure(RankFailure::kNumerics,
                     fmt::format("losses differ from one rank's by {:.2g}, parameters by {:.2g} "
                                 "(relative); at most {:.0e} is rounding",
                                 loss_error_, parameter_error_, kNumericsLimit));
  }
}

ordered_json RunJob::steps_json() const {
  ordered_json out = ordered_json::array();
  for (const Step& step : steps_) {
    const double begin = seconds_of(step.begin);
    ordered_json spans = ordered_json::array();
    for (const InstructionSpan& span : step.record.spans) {
      spans.push_back({begin + span.start, begin + span.end});
    }
    out.push_back({{"begin_s", begin},
                   {"end_s", begin + step.record.seconds},
                   {"loss_sum", step.record.loss_sum},
                   {"spans", std::move(spans)}});
  }
  return out;
}

ordered_json RunJob::operations_json(const OperationTimes& times) const {
  ordered_json out = ordered_json::array();
  const double steps = static_cast<double>(rank_.job.steps);
  for (const auto& [key, entry] : times.entries()) {
    std::vector<double> sorted = entry.seconds;
    std::sort(sorted.begin(), sorted.end());
    out.push_back(
        {{"signature", entry.signature},
         {"name", key.first},
         {"phase", name_of(key.second)},
         {"calls_per_step", static_cast<double>(sorted.size()) / steps},
         {"median_s", sorted[sorted.size() / 2]},
         {"total_s_per_step", std::accumulate(sorted.begin(), sorted.end(), 0.0) / steps}});
  }
  return out;
}

void RunJob::run() {
  const bool checks = rank_.job.numerics_steps > 0;
  if (checks) make_reference();
  HostGroup world(rank_.world);
  RoleRunner runner(scenario_, program_, grid_, RankId(rank_.world.rank()), &world,
                    std::make_unique<HostDevice>(), {rank_.job.seed});
  OperationTimes times;
  Heartbeats alive(rank_.report, nullptr), alive_and_timed(rank_.report, &times);
  runner.observe(&alive);
  if (checks) check_numerics(runner);
  for (std::int64_t s = 0; s < rank_.job.warmup; ++s) {
    rank_.report.progress("warm-up", s, rank_.job.warmup);
    runner.step();
  }
  runner.observe(&alive_and_timed);
  rank_.world.barrier();
  for (std::int64_t s = 0; s < rank_.job.steps; ++s) {
    rank_.report.progress("steps", s, rank_.job.steps);
    const Clock::time_point begin = Clock::now();
    steps_.push_back({begin, begin, runner.step()});
  }
  rank_.world.barrier();
  const MemoryParts peak = runner.ledger().at_peak();
  ordered_json memory;
  for (int c = 0; c < kMemoryCategories; ++c) {
    memory[name_of(static_cast<MemoryCategory>(c))] = peak[static_cast<std::size_t>(c)];
  }
  ordered_json result{{"rank", rank_.world.rank()},
                      {"host", rank_.host},
                      {"stage", runner.role().stage},
                      {"tp", runner.point().tp},
                      {"dp", runner.point().dp},
                      {"steps", steps_json()},
                      {"operations", operations_json(times)},
                      {"peak_memory_bytes", total(peak)},
                      {"memory_bytes", std::move(memory)}};
  if (checks) {
    result["numerics"] = {{"loss_relative_error", loss_error_},
                          {"parameter_relative_error", parameter_error_}};
  }
  write_result(rank_, result);
}

}  // namespace

void run_job(const RankContext& rank) { RunJob(rank).run(); }

}  // namespace stepcast
