// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "calibrate/import/bus_bandwidth.h"
#include "core/gathered_errors.h"
#include "diagnose/find_gaps.h"
#include "diagnose/foreign_traces.h"
#include "diagnose/product_order.h"
#include "diagnose/rank_waits.h"
#include "diagnose/step_windows.h"
#include "diagnose/work_ratio.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/time_parts.h"

namespace stepcast {
namespace {

bool has_shapes(const std::vector<Trace>& traces) {
  return std::ranges::any_of(traces, [](const Trace& one) { return !one.products.empty(); });
}

class Comparison {
 public:
  Comparison(const Scenario& scenario, const Prediction& prediction, std::vector<Timeline> forecast,
             std::vector<Timeline> measured, LabelStyle style, const ForecastNames& names,
             Diagnosis& out)
      : scenario_(scenario),
        prediction_(prediction),
        forecast_(std::move(forecast)),
        measured_(std::move(measured)),
        names_(names),
        out_(out) {
    out_.style = style;
  }

  Result<void> compare(const std::vector<Trace>& traces, const DiagnoseRules& rules) {
    split_all();
    const auto main = main_timeline(rules.rank);
    as_one_step_ = rules.as_one_step;
    if (!main) return failure(main.error());
    main_ = *main;
    const Timeline& own = measured_[main_];
    const StepParts& now = parts_[main_];
    const std::size_t f = forecast_of(own.stage);
    out_.rank = own.rank;
    out_.stage = own.stage;
    out_.steps_from = own.steps_from;
    out_.step_number = windows_[main_].number;
    for (std::size_t i = first_counted(own); i < own.steps.size(); ++i) {
      out_.step_lengths_s.push_back(own.steps[i].length());
    }
    out_.measured_s = now.length_s;
    out_.forecast_s = forecast_parts_[f].length_s;
    out_.batch_ratio = work_ratio({forecast_[f], forecast_[f].steps.front(), forecast_parts_[f]},
                                  {own, windows_[main_], now}, out_.style, out_.labels);
    out_.ideal_s = prediction_.waterfall.ideal.value() * out_.batch_ratio;
    out_.accounted = now.length_s > 0 ? 1 - now.unknown_s / now.length_s : 0;
    waits_ = waits_of(measured_, windows_, main_, out_.labels, names_.grid());
    add_kernels(forecast_parts_[f], now);
    add_messages(forecast_parts_[f], now);
    add_parts(forecast_parts_[f], now);
    add_ranks();
    find_gaps({forecast_parts_[f], now}, out_);
    add_notes(traces);
    out_.forecast_timelines = forecast_.size();
    out_.timelines = std::move(forecast_);
    for (Timeline& one : measured_) out_.timelines.push_back(std::move(one));
    return {};
  }

 private:
  bool has_stages() const { return scenario_.layout.pp > 1; }

  void split_all() {
    for (const Timeline& one : forecast_) {
      forecast_parts_.push_back(
          stepcast::parts_of(one, one.steps.front(), out_.labels, has_stages()));
    }
    for (const Timeline& one : measured_) windows_.push_back(median_step(one));
    // All ranks in the same step, where they have it.
    for (std::size_t i = 1; i < measured_.size(); ++i) {
      for (const Window& step : measured_[i].steps) {
        if (step.number == windows_.front().number) windows_[i] = step;
      }
    }
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      parts_.push_back(stepcast::parts_of(measured_[i], windows_[i], out_.labels, has_stages()));
    }
  }

  std::size_t forecast_of(std::int32_t stage) const {
    for (std::size_t i = 0; i < forecast_.size(); ++i) {
      if (forecast_[i].stage == stage) return i;
    }
    return 0;
  }

  // The rank that was asked for, else the one that computes longest: the others wait for it.
  Result<std::size_t> main_timeline(std::optional<RankId> rank) const {
    std::size_t out = 0;
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      if (rank && measured_[i].rank == *rank) return i;
      if (parts_[i].compute_s() > parts_[out].compute_s()) out = i;
    }
    if (!rank) return out;
    return failure({ErrorCode::kNotFound, fmt::format("no trace is of rank {}", rank->value), "",
                    "--rank", "the rank of one of the traces"});
  }

  void add_kernels(const StepParts& before, const StepParts& now) {
    std::set<std::int32_t> all;
    for (const auto& [label, times] : before.kernels) all.insert(label);
    for (const auto& [label, times] : now.kernels) all.insert(label);
    for (const std::int32_t label : all) {
      const Label& known = out_.labels[label];
      ComparedKernels one{known.words, known.family};
      one.scales = known.family != KernelFamily::kOptimizer && known.phase != Phase::kOptimizer;
      if (const auto at = before.kernels.find(label); at != before.kernels.end()) {
        one.forecast = at->second;
      }
      if (const auto at = now.kernels.find(label); at != now.kernels.end()) {
        one.measured = at->second;
      }
      recomputes_.push_back(known.phase == Phase::kRecompute);
      out_.kernels.push_back(std::move(one));
    }
    std::vector<std::size_t> order(out_.kernels.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const auto difference = [&](std::size_t i) {
        return std::abs(out_.kernels[i].measured.busy_s - out_.kernels[i].forecast.busy_s);
      };
      return difference(a) > difference(b);
    });
    std::vector<ComparedKernels> sorted;
    std::vector<bool> recomputes;
    for (const std::size_t i : order) {
      sorted.push_back(std::move(out_.kernels[i]));
      recomputes.push_back(recomputes_[i]);
    }
    out_.kernels = std::move(sorted);
    recomputes_ = std::move(recomputes);
  }

  void add_messages(const StepParts& before, const StepParts& now) {
    std::set<std::int32_t> all;
    for (const auto& [label, times] : before.messages) all.insert(label);
    for (const auto& [label, times] : now.messages) all.insert(label);
    for (const std::int32_t label : all) {
      const Label& known = out_.labels[label];
      ComparedMessages one{known.words};
      if (known.message) {
        one.traffic = traffic_of(known.message->group);
        one.kind = name_of(known.message->kind);
        if (known.message->group != AxisGroup()) {
          one.group = name_of(known.message->group);
          one.ranks = names_.grid().group_size(known.message->group);
          one.bus_factor = one.ranks > 1 ? bus_factor(known.message->kind, one.ranks) : 1;
        }
      }
      if (const auto at = before.messages.find(label); at != before.messages.end()) {
        one.forecast = at->second;
      }
      if (const auto at = now.messages.find(label); at != now.messages.end()) {
        one.measured = at->second;
      }
      if (const auto at = waits_.waited_s.find(label); at != waits_.waited_s.end()) {
        one.waited_s = at->second;
      }
      out_.messages.push_back(std::move(one));
    }
    std::ranges::stable_sort(out_.messages, {}, &ComparedMessages::traffic);
  }

  void add_part(std::string key, std::string words, double forecast, double measured) {
    if (forecast == 0 && measured == 0) return;
    out_.parts.push_back({std::move(key), std::move(words), forecast, measured});
  }

  // Kernels of a family in both, without what is computed again.
  std::pair<double, double> of_family(KernelFamily family, bool recomputes) const {
    std::pair<double, double> out{0, 0};
    for (std::size_t i = 0; i < out_.kernels.size(); ++i) {
      const ComparedKernels& one = out_.kernels[i];
      if (recomputes_[i] != recomputes) continue;
      if (!recomputes && one.family != family) continue;
      out.first += one.forecast.busy_s;
      out.second += one.measured.busy_s;
    }
    return out;
  }

  void add_compute_parts() {
    if (out_.style == LabelStyle::kWholePasses) {
      for (const ComparedKernels& one : out_.kernels) {
        add_part(one.words, one.words, one.forecast.busy_s, one.measured.busy_s);
      }
      return;
    }
    const auto products = of_family(KernelFamily::kProducts, false);
    const auto attention = of_family(KernelFamily::kAttention, false);
    const double before = products.first + attention.first;
    const double now = products.second + attention.second;
    const double ideal = std::min(prediction_.waterfall.ideal.value(), before);
    const double ideal_now = std::min(out_.ideal_s, now);
    add_part("ideal", "ideal FLOP time", ideal, ideal_now);
    add_part("inefficiency", "matrix products and attention beyond it", before - ideal,
             now - ideal_now);
    const auto memory = of_family(KernelFamily::kMemoryBound, false);
    add_part("memory_bound", "memory-bound kernels", memory.first, memory.second);
    const auto again = of_family(KernelFamily::kProducts, true);
    add_part("recompute", "recompute", again.first, again.second);
    const auto update = of_family(KernelFamily::kOptimizer, false);
    add_part("optimizer", "optimizer", update.first, update.second);
  }

  void add_parts(const StepParts& before, const StepParts& now) {
    add_compute_parts();
    for (const TimePartRow& row : kTimeParts) {
      if (!row.traffic) continue;
      double forecast = 0, measured = 0;
      for (const ComparedMessages& one : out_.messages) {
        if (one.traffic != row.traffic) continue;
        forecast += one.forecast.exposed_s;
        measured += one.measured.exposed_s;
      }
      add_part(fmt::format("exposed_{}", row.key), row.words, forecast, measured);
    }
    double forecast = 0, measured = 0;
    for (const ComparedMessages& one : out_.messages) {
      if (one.traffic) continue;
      forecast += one.forecast.exposed_s;
      measured += one.measured.exposed_s;
    }
    add_part("exposed_other", "exposed other communication", forecast, measured);
    add_part("copies", "exposed copies", before.copies_s, now.copies_s);
    add_part("bubble", "waiting for other stages", before.bubble_s, now.bubble_s);
    add_part("host", "waiting for the host", before.host_s, now.host_s);
    add_part("starts", "between kernels", before.starts_s, now.starts_s);
    add_part("streams", "waiting for other streams", before.streams_s, now.streams_s);
    add_part("unknown", "nothing tells", before.unknown_s, now.unknown_s);
  }

  void add_ranks() {
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const Timeline& one = measured_[i];
      RankRow row{one.rank, one.stage};
      row.step_s = parts_[i].length_s;
      row.compute_s = parts_[i].compute_s();
      row.exposed_s = parts_[i].exposed_s();
      row.idle_s = parts_[i].idle_s();
      const double forecast = forecast_parts_[forecast_of(one.stage)].compute_s();
      row.ratio = forecast > 0 ? row.compute_s / forecast : 1;
      if (const auto at = waits_.caused_s.find(one.rank); at != waits_.caused_s.end()) {
        row.caused_s = at->second;
      }
      out_.ranks.push_back(row);
    }
  }

  void add_notes(const std::vector<Trace>& traces) {
    if (out_.steps_from == StepSource::kRepetition) {
      out_.notes.emplace_back(
          "the trace has no ProfilerStep marks: its steps are the rows of kernels that it repeats "
          "(--one-step takes all of it as one)");
    } else if (out_.steps_from == StepSource::kWhole) {
      out_.notes.emplace_back(
          as_one_step_ ? "all that the trace holds counts as one step"
                       : "the trace has no ProfilerStep marks and repeats nothing: all that it "
                         "holds counts as one step");
    }
    if (out_.style == LabelStyle::kFamilies) {
      out_.notes.emplace_back(
          has_shapes(traces)
              ? "products are not told apart: most of their time is of shapes that the layout does "
                "not have, or of kernels without one"
              : "products are not told apart: profile with record_shapes=True to see each");
    }
    if (measured_.size() == 1 && scenario_.cluster.gpus() > 1) {
      out_.notes.emplace_back(
          "one rank's trace does not tell waiting for other ranks from slow links: give theirs, "
          "too");
    }
  }

  const Scenario& scenario_;
  const Prediction& prediction_;
  std::vector<Timeline> forecast_, measured_;
  const ForecastNames& names_;
  Diagnosis& out_;
  std::vector<StepParts> forecast_parts_, parts_;
  std::vector<Window> windows_;   // by measured timeline
  std::vector<bool> recomputes_;  // by kernels
  RankWaits waits_;
  std::size_t main_ = 0;
  bool as_one_step_ = false;
};

}  // namespace

Result<Diagnosis> diagnose(const Scenario& scenario, const Prediction& prediction,
                           const Trace& forecast, const std::vector<Trace>& traces,
                           const DiagnoseRules& rules) {
  const ForecastNames names(scenario);
  const Accelerator& device = scenario.cluster.spec.accelerator;
  if (Errors foreign = foreign_traces(traces, names, device); !foreign.empty()) {
    return failure(std::move(foreign));
  }
  Diagnosis out;
  LabelStyle style = style_for(traces, names);
  auto own = timelines_of({forecast}, names, style, out.labels);
  if (!own) return failure(own.error());
  auto measured = timelines_of(traces, names, style, out.labels, rules.as_one_step);
  if (!measured) return failure(measured.error());
  if (style == LabelStyle::kFamilies) {
    auto by_operation = timelines_of({forecast}, names, LabelStyle::kProducts, out.labels);
    if (!by_operation) return failure(by_operation.error());
    if (label_products_in_order(*by_operation, out.labels, *measured)) {
      own = std::move(by_operation);
      style = LabelStyle::kProducts;
      out.notes.emplace_back(
          has_shapes(traces) ? "products are told apart by their order: most of their time is of "
                               "shapes that the layout does not have, or of kernels without one"
                             : "products are told apart by their order: the trace has no shapes");
    }
  }
  Comparison comparison(scenario, prediction, std::move(*own), std::move(*measured), style, names,
                        out);
  if (auto compared = comparison.compare(traces, rules); !compared)
    return failure(compared.error());
  return out;
}

}  // namespace stepcast
