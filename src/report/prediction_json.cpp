// SPDX-License-Identifier: Apache-2.0
#include "report/prediction_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/escape.h"
#include "report/breakdown.h"
#include "report/number_text.h"

namespace stepcast {

using nlohmann::ordered_json;

void put(ordered_json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}

ordered_json layout_object(const Scenario& scenario) {
  ordered_json out = ordered_json(to_json(scenario))["layout"];
  out["framework"] = name_of(scenario.training.framework);
  return out;
}

ordered_json time_object(const TimeParts& parts) {
  ordered_json out;
  for (const TimePartRow& row : kTimeParts) {
    ordered_json& object = row.kind == TimeKind::kExposed ? out["exposed"] : out;
    put(object, row.key, (parts.*row.time).value());
  }
  return out;
}

namespace {

ordered_json class_object(const RankClass& rank_class) {
  ordered_json out;
  out["ranks"] = ranks_text(rank_class.ranks);
  out["count"] = rank_class.ranks.size();
  out["stage"] = rank_class.stage;
  put(out, "busy_s", rank_class.busy.value());
  put(out, "bubble_fraction", rank_class.bubble_fraction);
  out["time_s"] = time_object(rank_class.time);
  out["peak_memory_bytes"] = rank_class.peak_memory;
  put(out, "peak_at_s", rank_class.peak_at.value());
  ordered_json& memory = out["memory_bytes"] = ordered_json::object();
  for (int i = 0; i < kMemoryCategories; ++i) {
    memory[name_of(static_cast<MemoryCategory>(i))] =
        rank_class.memory[static_cast<std::size_t>(i)];
  }
  out["reserved_bytes"] = rank_class.reserved_bytes;
  out["framework_bytes"] = rank_class.framework_bytes;
  out["device_bytes"] = device_bytes(rank_class);
  return out;
}

void put_throughput(ordered_json& out, const Prediction& prediction) {
  put(out, "step_time_s", prediction.step_time.value());
  put(out, "step_time_low_s", prediction.step_time_low.value());
  put(out, "step_time_high_s", prediction.step_time_high.value());
  out["unproven"] = prediction.unproven;
  if (!prediction.alone) {
    put(out, "tokens_per_s", prediction.tokens_per_s);
    put(out, "tokens_per_s_per_gpu", prediction.tokens_per_s_per_gpu);
    put(out, "model_tflops_per_gpu", prediction.model_tflops_per_gpu);
    put(out, "hardware_tflops_per_gpu", prediction.hardware_tflops_per_gpu);
    out["flops"] = name_of(prediction.flops);
    put(out, "mfu", prediction.mfu);
    put(out, "hfu", prediction.hfu);
  }
  put(out, "bubble_fraction", prediction.bubble_fraction);
  put(out, "bubble_fraction_steady", prediction.bubble_fraction_steady);
}

}  // namespace

ordered_json prediction_object(const Scenario& scenario, const Prediction& prediction) {
  ordered_json out;
  out["stepcast"] = 1;
  out["fits"] = prediction.fits;
  out["verdict"] = name_of(verdict_of(prediction));
  put_throughput(out, prediction);
  out["time_s"] = time_object(prediction.time);
  if (!prediction.alone) {
    ordered_json& waterfall = out["waterfall_s"] = ordered_json::object();
    for (const TimePart& step : steps_of(prediction.waterfall)) {
      put(waterfall, step.key.c_str(), step.time.value());
    }
  }
  ordered_json& provenance = out["provenance"] = ordered_json::object();
  for (int i = 0; i < kProvenances; ++i) {
    put(provenance, name_of(static_cast<Provenance>(i)),
        prediction.provenance[static_cast<std::size_t>(i)]);
  }
  out["peak_memory_bytes"] = prediction.peak_memory;
  out["peak_reserved_bytes"] = prediction.peak_reserved;
  out["peak_device_bytes"] = prediction.peak_device;
  out["peak_device_low_bytes"] = prediction.peak_device_low;
  out["peak_device_high_bytes"] = prediction.peak_device_high;
  out["device_memory_bytes"] = prediction.device_memory;
  out["rank_classes"] = ordered_json::array();
  for (const RankClass& rank_class : prediction.rank_classes) {
    out["rank_classes"].push_back(class_object(rank_class));
  }
  out["critical_path"] = ordered_json::array();
  for (const PathStep& step : prediction.critical_path) {
    ordered_json entry;
    entry["what"] = step.what;
    put(entry, "time_s", step.time.value());
    out["critical_path"].push_back(std::move(entry));
  }
  out["simulated_tasks"] = prediction.simulated_tasks;
  out["resolved"] = ordered_json(to_json(scenario));
  return out;
}

Written prediction_json(const Scenario& scenario, const Prediction& prediction) {
  return json_file(prediction_object(scenario, prediction), 2);
}

}  // namespace stepcast
