// SPDX-License-Identifier: Apache-2.0
#include "validate/measured_run.h"

#include <algorithm>
#include <map>

#include "core/statistics.h"
#include "layout/scenario.h"
#include "predict/attribution.h"
#include "predict/prediction.h"
#include "validate/measured_timeline.h"

namespace stepcast {
namespace {

Spread spread_of(const std::vector<double>& values) {
  return {median(values), quantile(values, 0.1), quantile(values, 0.9)};
}

TimeParts& operator+=(TimeParts& sum, const TimeParts& more) {
  for (const TimePartRow& row : kTimeParts) sum.*row.time += more.*row.time;
  return sum;
}

TimeParts scaled(TimeParts parts, double factor) {
  for (const TimePartRow& row : kTimeParts) parts.*row.time *= factor;
  return parts;
}

// A pass is measured as a whole, and its operations say how its time divides. Time that no
// operation accounts for is the executor's own, and so is a collective of a rank that runs alone,
// because it sends nothing. A collective beside kernels counts with the time that they waited.
void split_passes(TimeParts& parts, const std::vector<OperationTime>& operations, bool alone) {
  TimeParts sum;
  for (const OperationTime& operation : operations) {
    if (alone && operation.is_collective()) continue;
    if (operation.is_collective()) {
      exposed_part(sum, operation.group) += operation.exposed;
    } else if (operation.phase == Phase::kOptimizer) {
      sum.optimizer += operation.total;
    } else if (operation.phase == Phase::kRecompute) {
      sum.recompute += operation.total;
    } else {
      sum.compute += operation.total;
    }
  }
  const Seconds passes = parts.compute + parts.optimizer, accounted = sum.total();
  if (accounted.value() <= 0) return;
  const TimeParts inside = scaled(sum, accounted > passes ? passes / accounted : 1.0);
  parts.compute = parts.optimizer = Seconds(0);
  parts += inside;
  parts.other += passes - inside.total();
}

class Measurer {
 public:
  Measurer(const Scenario& scenario, const Program& program, const RankGrid& grid,
           const std::vector<RankFile>& files)
      : scenario_(scenario),
        grid_(grid),
        files_(files),
        timelines_(program, grid, files),
        steps_(files.front().steps.size()) {}

  MeasuredRun run() {
    read_periods();
    if (static_cast<std::int64_t>(files_.size()) < grid_.size()) {
      out_.alone = files_.front().rank;
    } else {
      read_rates();
    }
    read_ranks();
    read_load();
    read_bubble();
    read_parts();
    return std::move(out_);
  }

 private:
  // The last rank to end a step, the lowest of equals.
  std::size_t last_to_end(std::size_t step) const {
    std::size_t last = 0;
    for (std::size_t r = 0; r < files_.size(); ++r) {
      if (files_[r].steps[step].end > files_[last].steps[step].end) last = r;
    }
    return last;
  }

  void read_periods() {
    std::vector<std::size_t> was_last(files_.size(), 0);
    std::vector<double> periods;
    double before = 0;
    for (std::size_t step = 0; step < steps_; ++step) {
      const std::size_t last = last_to_end(step);
      const double end = files_[last].steps[step].end;
      if (step > 0) periods.push_back(end - before);
      before = end;
      ++was_last[last];
    }
    out_.periods = periods.size();
    out_.step_time = spread_of(periods);
    critical_ = static_cast<std::size_t>(std::max_element(was_last.begin(), was_last.end()) -
                                         was_last.begin());
    out_.critical_rank = files_[critical_].rank;
    out_.operations = files_[critical_].operations;
  }

  void read_rates() {
    const double time = out_.step_time.median;
    if (time <= 0) return;
    const auto gpus = static_cast<double>(scenario_.cluster.gpus());
    out_.tokens_per_s = static_cast<double>(scenario_.training.global_batch) *
                        static_cast<double>(scenario_.training.sequence_length) / time;
    out_.tokens_per_s_per_gpu = out_.tokens_per_s / gpus;
    out_.model_tflops_per_gpu = model_flops(scenario_).value() / time / gpus / 1e12;
    if (const auto peak = scenario_.cluster.spec.accelerator.peak(scenario_.training.precision)) {
      out_.mfu = out_.model_tflops_per_gpu * 1e12 / peak->value();
    }
  }

  void read_ranks() {
    for (const RankFile& file : files_) {
      MeasuredRank& rank = out_.ranks.emplace_back();
      rank.rank = file.rank;
      rank.host = file.host;
      rank.stage = grid_.point(file.rank).pp;
      rank.peak_memory = file.peak_memory;
      rank.memory = file.memory;
      rank.pool_used = file.pool_used;
      rank.device_used = file.device_used;
      out_.peak_memory = std::max(out_.peak_memory, file.peak_memory);
      out_.device_used = std::max(out_.device_used, file.device_used);
      if (!file.numerics) continue;
      if (!out_.numerics) out_.numerics.emplace();
      Numerics& worst = *out_.numerics;
      worst.loss_relative_error =
          std::max(worst.loss_relative_error, file.numerics->loss_relative_error);
      // An empty optional compares as the smallest.
      worst.parameter_relative_error =
          std::max(worst.parameter_relative_error, file.numerics->parameter_relative_error);
    }
  }

  // Ranks of one machine see the same processors, each over about the same steps: the longest view
  // counts, and its own use is that of all of them.
  void read_load() {
    std::map<std::string, ProcessorUse> machines;
    for (const RankFile& file : files_) {
      if (!file.processors) continue;
      ProcessorUse& machine = machines[file.host];
      const double own_s = machine.own_s + file.processors->own_s;
      if (file.processors->span_s > machine.span_s) machine = *file.processors;
      machine.own_s = own_s;
    }
    const auto taken = [](const ProcessorUse& use) {
      return use.others_fraction() + use.stolen_fraction();
    };
    for (const auto& [host, use] : machines) {
      if (!out_.load || taken(use) > taken(out_.load->processors)) out_.load = {host, use};
    }
  }

  void read_bubble() {
    std::vector<std::vector<double>> busy(files_.size()), bubbles(files_.size());
    std::vector<double> all;
    for (std::size_t step = 0; step < steps_; ++step) {
      std::vector<MeasuredTimeline> timelines;
      double largest = 0, sum = 0;
      for (std::size_t r = 0; r < files_.size(); ++r) {
        timelines.push_back(timelines_.read(r, step));
        largest = std::max(largest, timelines.back().span());
      }
      for (std::size_t r = 0; r < files_.size(); ++r) {
        const double used = timelines[r].busy + timelines[r].exposed_in_span;
        const double share = largest > 0 ? used / largest : 1;
        busy[r].push_back(timelines[r].busy);
        bubbles[r].push_back(std::max(0.0, 1 - share));
        sum += share;
      }
      all.push_back(std::max(0.0, 1 - sum / static_cast<double>(files_.size())));
    }
    out_.bubble_fraction = spread_of(all);
    for (std::size_t r = 0; r < files_.size(); ++r) {
      out_.ranks[r].busy = Seconds(median(busy[r]));
      out_.ranks[r].bubble_fraction = median(bubbles[r]);
    }
  }

  void read_parts() {
    TimeParts sum;
    for (std::size_t step = 1; step < steps_; ++step) {
      sum += timelines_.read(critical_, step).parts;
    }
    TimeParts mean = scaled(sum, 1.0 / static_cast<double>(steps_ - 1));
    split_passes(mean, out_.operations, out_.alone.has_value());
    const double length = mean.total().value();
    out_.time = length > 0 ? scaled(mean, out_.step_time.median / length) : mean;
  }

  const Scenario& scenario_;
  const RankGrid& grid_;
  const std::vector<RankFile>& files_;
  MeasuredTimelines timelines_;
  std::size_t steps_;
  std::size_t critical_ = 0;  // into files_
  MeasuredRun out_;
};

}  // namespace

MeasuredRun measure(const Scenario& scenario, const Program& program, const RankGrid& grid,
                    const std::vector<RankFile>& files) {
  return Measurer(scenario, program, grid, files).run();
}

}  // namespace stepcast
