// SPDX-License-Identifier: Apache-2.0
#include "report/validation_json.h"

#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/prediction_json.h"
#include "validate/run_figures.h"

namespace stepcast {
namespace {

void put_spread(Json& out, std::string name, const Spread& spread) {
  put(out, name.c_str(), spread.median);
  const std::string unit = name.ends_with("_s") ? "_s" : "";
  name.resize(name.size() - unit.size());
  put(out, (name + "_p10" + unit).c_str(), spread.p10);
  put(out, (name + "_p90" + unit).c_str(), spread.p90);
}

Json memory_object(const MemoryParts& memory) {
  Json out;
  for (int i = 0; i < static_cast<int>(MemoryCategory::kOuter); ++i) {  // no run has outer steps
    out[name_of(static_cast<MemoryCategory>(i))] = memory[static_cast<std::size_t>(i)];
  }
  return out;
}

Json measured_object(const MeasuredRun& run) {
  Json out;
  out["steps"] = run.periods;
  for (const RunFigure& figure : run_figures()) {
    if (figure.spread) {
      put_spread(out, figure.key, *figure.spread(run));
    } else if (const auto value = figure.measured(run); value && !figure.is_memory()) {
      put(out, figure.key, *value);
    }
  }
  out["critical_rank"] = run.critical_rank.value;
  out["time_s"] = time_object(run.time);
  for (const RunFigure& figure : run_figures()) {
    const auto value = figure.measured(run);
    if (value && figure.is_memory()) out[figure.key] = std::llround(*value);
  }
  if (run.load) {
    out["machine_load"] = {{"host", run.load->host},
                           {"others_fraction", run.load->processors.others_fraction()},
                           {"stolen_fraction", run.load->processors.stolen_fraction()},
                           {"busy", run.load->processors.is_too_busy()}};
  }
  out["ranks"] = Json::array();
  for (const MeasuredRank& rank : run.ranks) {
    Json one;
    one["rank"] = rank.rank.value;
    one["host"] = rank.host;
    one["stage"] = rank.stage;
    put(one, "busy_s", rank.busy.value());
    put(one, "bubble_fraction", rank.bubble_fraction);
    one["peak_memory_bytes"] = rank.peak_memory;
    one["memory_bytes"] = memory_object(rank.memory);
    if (rank.pool_used) one["pool_used_bytes"] = *rank.pool_used;
    if (rank.device_used) one["device_used_bytes"] = *rank.device_used;
    out["ranks"].push_back(std::move(one));
  }
  return out;
}

Json alone_object(const RankAlone& alone) {
  Json out;
  out["rank"] = alone.rank.value;
  out["of_ranks"] = alone.ranks;
  out["stage"] = alone.point.pp;
  out["tp"] = alone.point.tp;
  out["dp"] = alone.point.dp;
  out["left_out"] = Json::array();
  for (const LeftOut& one : alone.left_out) {
    out["left_out"].push_back(
        {{"what", one.what}, {"calls_per_step", one.calls}, {"bytes_per_step", one.bytes}});
  }
  return out;
}

Json operation_object(const ComparedOperation& operation) {
  Json out;
  out["name"] = operation.name;
  out["phase"] = name_of(operation.phase);
  put(out, "predicted_calls", operation.predicted_calls);
  put(out, "measured_calls", operation.measured_calls);
  put(out, "predicted_s", operation.predicted.value());
  put(out, "measured_s", operation.measured.value());
  if (operation.error) put(out, "error", *operation.error);
  return out;
}

const char* name_of(DriftState state) {
  if (state == DriftState::kBroken) return "broken";
  if (state == DriftState::kInconclusive) return "inconclusive";
  return state == DriftState::kBetter ? "better" : "kept";
}

Json drift_object(const BaselineDrift& drift) {
  Json out;
  out["file"] = drift.file;
  out["updated"] = drift.updated;
  if (!drift.skipped.empty()) out["skipped"] = drift.skipped;
  out["figures"] = Json::array();
  for (const DriftRow& row : drift.rows) {
    Json& one = out["figures"].emplace_back();
    one["of"] = row.predicted ? "predicted" : "measured";
    one["key"] = row.key;
    put(one, "recorded", row.recorded);
    put(one, "now", row.now);
    if (!row.limit) continue;
    put(one, "change", row.change);
    put(one, "limit", *row.limit);
    one["state"] = name_of(row.state);
  }
  const auto list = [](const std::vector<Finding>& findings) {
    Json all = Json::array();
    for (const Finding& finding : findings) {
      all.push_back({{"what", finding.title}, {"found", finding.message}});
    }
    return all;
  };
  out["broken"] = list(drift.broken);
  if (!drift.inconclusive.empty()) out["inconclusive"] = list(drift.inconclusive);
  return out;
}

}  // namespace

Written validation_json(const Scenario& scenario, const Prediction& too_large) {
  Json out;
  out["stepcast"] = 1;
  out["predicted"] = prediction_object(scenario, too_large);
  out["passed"] = false;
  return json_file(out, 2);
}

Written validation_json(const Scenario& scenario, const Validation& validation) {
  Json out;
  out["stepcast"] = 1;
  if (validation.alone) out["alone"] = alone_object(*validation.alone);
  out["predicted"] = prediction_object(scenario, validation.predicted);
  out["measured"] = measured_object(validation.measured);
  Json& error = out["error"] = Json::object();
  for (const ComparedFigure& figure : validation.figures) {
    if (figure.error) put(error, figure.key.c_str(), *figure.error);
  }
  out["covered"] = validation.covered;
  out["operations"] = Json::array();
  for (const ComparedOperation& one : validation.operations) {
    out["operations"].push_back(operation_object(one));
  }
  if (const auto& numerics = validation.measured.numerics) {
    Json& object = out["numerics"] = Json::object();
    put(object, "loss_relative_error", numerics->loss_relative_error);
    if (numerics->parameter_relative_error) {
      put(object, "parameter_relative_error", *numerics->parameter_relative_error);
    }
    if (validation.numerics) put(object, "loss_limit", validation.numerics->loss);
    if (validation.numerics && validation.numerics->parameters) {
      put(object, "parameter_limit", *validation.numerics->parameters);
    }
  }
  out["broken"] = Json::array();
  for (const Finding& finding : validation.broken) {
    out["broken"].push_back({{"what", finding.title}, {"found", finding.message}});
  }
  if (validation.drift) out["baseline"] = drift_object(*validation.drift);
  out["passed"] = validation.passed();
  return json_file(out, 2);
}

}  // namespace stepcast
