// SPDX-License-Identifier: Apache-2.0
#include "report/validation_json.h"

#include <nlohmann/json.hpp>

#include "core/text/escape.h"
#include "report/prediction_json.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

void put_spread(ordered_json& out, const std::string& name, const std::string& unit,
                const Spread& spread) {
  put(out, (name + unit).c_str(), spread.median);
  put(out, (name + "_p10" + unit).c_str(), spread.p10);
  put(out, (name + "_p90" + unit).c_str(), spread.p90);
}

ordered_json memory_object(const MemoryParts& memory) {
  ordered_json out;
  for (int i = 0; i < kMemoryCategories; ++i) {
    out[name_of(static_cast<MemoryCategory>(i))] = memory[static_cast<std::size_t>(i)];
  }
  return out;
}

ordered_json measured_object(const MeasuredRun& run) {
  ordered_json out;
  out["steps"] = run.periods;
  put_spread(out, "step_time", "_s", run.step_time);
  if (!run.alone) {
    put(out, "tokens_per_s", run.tokens_per_s);
    put(out, "tokens_per_s_per_gpu", run.tokens_per_s_per_gpu);
    put(out, "model_tflops_per_gpu", run.model_tflops_per_gpu);
  }
  if (run.mfu) put(out, "mfu", *run.mfu);
  put_spread(out, "bubble_fraction", "", run.bubble_fraction);
  out["critical_rank"] = run.critical_rank.value;
  out["time_s"] = time_object(run.time);
  out["peak_memory_bytes"] = run.peak_memory;
  if (run.device_used) out["device_used_bytes"] = *run.device_used;
  if (run.load) {
    out["machine_load"] = {{"host", run.load->host},
                           {"others_fraction", run.load->processors.others_fraction()},
                           {"stolen_fraction", run.load->processors.stolen_fraction()},
                           {"busy", run.load->processors.is_too_busy()}};
  }
  out["ranks"] = ordered_json::array();
  for (const MeasuredRank& rank : run.ranks) {
    ordered_json one;
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

ordered_json alone_object(const RankAlone& alone) {
  ordered_json out;
  out["rank"] = alone.rank.value;
  out["of_ranks"] = alone.ranks;
  out["stage"] = alone.point.pp;
  out["tp"] = alone.point.tp;
  out["dp"] = alone.point.dp;
  out["left_out"] = ordered_json::array();
  for (const LeftOut& one : alone.left_out) {
    out["left_out"].push_back(
        {{"what", one.what}, {"calls_per_step", one.calls}, {"bytes_per_step", one.bytes}});
  }
  return out;
}

ordered_json operation_object(const ComparedOperation& operation) {
  ordered_json out;
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
  return state == DriftState::kBetter ? "better" : "kept";
}

ordered_json drift_object(const BaselineDrift& drift) {
  ordered_json out;
  out["file"] = drift.file;
  out["updated"] = drift.updated;
  if (!drift.skipped.empty()) out["skipped"] = drift.skipped;
  out["figures"] = ordered_json::array();
  for (const DriftRow& row : drift.rows) {
    ordered_json& one = out["figures"].emplace_back();
    one["of"] = row.predicted ? "predicted" : "measured";
    one["key"] = row.key;
    put(one, "recorded", row.recorded);
    put(one, "now", row.now);
    if (!row.limit) continue;
    put(one, "change", row.change);
    put(one, "limit", *row.limit);
    one["state"] = name_of(row.state);
  }
  out["broken"] = ordered_json::array();
  for (const Finding& finding : drift.broken) {
    out["broken"].push_back({{"what", finding.title}, {"found", finding.message}});
  }
  return out;
}

}  // namespace

Written validation_json(const Scenario& scenario, const Prediction& too_large) {
  ordered_json out;
  out["stepcast"] = 1;
  out["predicted"] = prediction_object(scenario, too_large);
  out["passed"] = false;
  return json_file(out, 2);
}

Written validation_json(const Scenario& scenario, const Validation& validation) {
  ordered_json out;
  out["stepcast"] = 1;
  if (validation.alone) out["alone"] = alone_object(*validation.alone);
  out["predicted"] = prediction_object(scenario, validation.predicted);
  out["measured"] = measured_object(validation.measured);
  ordered_json& error = out["error"] = ordered_json::object();
  for (const ComparedFigure& figure : validation.figures) {
    if (figure.error) put(error, figure.key.c_str(), *figure.error);
  }
  out["covered"] = validation.covered;
  out["operations"] = ordered_json::array();
  for (const ComparedOperation& one : validation.operations) {
    out["operations"].push_back(operation_object(one));
  }
  if (const auto& numerics = validation.measured.numerics) {
    ordered_json& object = out["numerics"] = ordered_json::object();
    put(object, "loss_relative_error", numerics->loss_relative_error);
    if (numerics->parameter_relative_error) {
      put(object, "parameter_relative_error", *numerics->parameter_relative_error);
    }
    if (validation.numerics) put(object, "loss_limit", validation.numerics->loss);
    if (validation.numerics && validation.numerics->parameters) {
      put(object, "parameter_limit", *validation.numerics->parameters);
    }
  }
  out["broken"] = ordered_json::array();
  for (const Finding& finding : validation.broken) {
    out["broken"].push_back({{"what", finding.title}, {"found", finding.message}});
  }
  if (validation.drift) out["baseline"] = drift_object(*validation.drift);
  out["passed"] = validation.passed();
  return json_file(out, 2);
}

}  // namespace stepcast
