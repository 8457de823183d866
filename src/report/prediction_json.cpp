// SPDX-License-Identifier: Apache-2.0
#include "report/prediction_json.h"

#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/number_text.h"

namespace stepcast {

void put(Json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}

void put_layout(Json& out, const Scenario& scenario) {
  out["framework"] = name_of(scenario.training.framework);
  out["layout"] = Json(to_json(scenario))["layout"];
}

Json time_object(const TimeParts& parts) {
  Json out;
  for (const TimePartRow& row : kTimeParts) {
    Json& object = row.kind == TimeKind::kExposed ? out["exposed"] : out;
    put(object, row.key, (parts.*row.time).value());
  }
  return out;
}

namespace {

Json class_object(const RankClass& rank_class, int categories) {
  Json out;
  out["ranks"] = ranks_text(rank_class.ranks);
  out["count"] = rank_class.ranks.size();
  out["stage"] = rank_class.stage;
  put(out, "busy_s", rank_class.busy.value());
  put(out, "bubble_fraction", rank_class.bubble_fraction);
  out["time_s"] = time_object(rank_class.time);
  out["peak_memory_bytes"] = rank_class.peak_memory;
  put(out, "peak_at_s", rank_class.peak_at.value());
  Json& memory = out["memory_bytes"] = Json::object();
  for (int i = 0; i < categories; ++i) {
    memory[name_of(static_cast<MemoryCategory>(i))] =
        rank_class.memory[static_cast<std::size_t>(i)];
  }
  out["reserved_bytes"] = rank_class.reserved_bytes;
  out["framework_bytes"] = rank_class.framework_bytes;
  out["device_bytes"] = device_bytes(rank_class);
  if (rank_class.host_bytes > 0) out["host_bytes"] = rank_class.host_bytes;
  if (!rank_class.gpu.empty()) {
    out["gpu"] = rank_class.gpu;
    out["device_memory_bytes"] = rank_class.device_memory;
  }
  return out;
}

Json collective_object(const SentCollective& one) {
  Json out;
  out["stage"] = one.stage;
  out["collective"] = one.kind;
  out["group"] = one.group;
  out["ranks"] = one.ranks;
  out["bytes"] = one.bytes;
  put(out, "times", one.times);
  put(out, "time_s", one.time.value());
  out["algorithm"] = one.algorithm;
  if (!one.protocol.empty()) out["protocol"] = one.protocol;
  if (one.channels > 0) out["channels"] = one.channels;
  out["curve"] = one.curve;
  out["provenance"] = name_of(one.provenance);
  out["bound_by"] = one.bound_by;
  put(out, "full", one.full);
  return out;
}

Json outer_object(const OuterSteps& stated, const OuterStep& outer) {
  Json out;
  out["islands"] = outer.islands;
  out["every"] = stated.every;
  out["fragments"] = stated.fragments;
  out["overlap_steps"] = stated.overlap_steps;
  put(out, "inner_step_time_s", outer.inner_step.value());
  put(out, "message_s", outer.message.value());
  put(out, "exposed_s", outer.exposed.value());
  put(out, "update_s", outer.update.value());
  put(out, "sent_bytes", outer.sent.value());
  put(out, "to_hide_bytes_per_s", outer.to_hide.value());
  out["bound_by"] = outer.bound_by;
  put(out, "full", outer.full);
  return out;
}

Json beside_object(const Scenario& scenario, const Prediction& prediction) {
  const JobsBeside& beside = prediction.beside;
  Json out;
  put(out, "step_time_alone_s", beside.alone.value());
  put(out, "lost_s", (prediction.step_time - beside.alone).value());
  out["jobs"] = Json::array();
  for (std::size_t j = 0; j < beside.steps.size(); ++j) {
    Json job;
    job["nodes"] = scenario.other_jobs[j].nodes;
    job["model"] = scenario.other_jobs[j].scenario->model.name;
    put(job, "step_time_s", beside.steps[j].value());
    put(job, "step_time_alone_s", beside.steps_alone[j].value());
    out["jobs"].push_back(std::move(job));
  }
  out["links"] = Json::array();
  for (const SharedLink& link : beside.links) {
    Json shared;
    shared["link"] = link.name;
    put(shared, "own", link.own);
    put(shared, "others", link.others);
    out["links"].push_back(std::move(shared));
  }
  return out;
}

void put_throughput(Json& out, const Prediction& prediction) {
  put_figures(out, FigureGroup::kTime, prediction);
  out["unproven"] = prediction.unproven;
  if (!prediction.alone) {
    put_figures(out, FigureGroup::kRates, prediction);
    out["flops"] = name_of(prediction.flops);
    put_figures(out, FigureGroup::kUse, prediction);
  }
  put_figures(out, FigureGroup::kBubble, prediction);
}

}  // namespace

Json prediction_object(const Scenario& scenario, const Prediction& prediction) {
  Json out;
  out["stepcast"] = 1;
  out["fits"] = prediction.fits;
  out["verdict"] = name_of(verdict_of(prediction));
  put_throughput(out, prediction);
  out["time_s"] = time_object(prediction.time);
  if (!prediction.alone) {
    Json& waterfall = out["waterfall_s"] = Json::object();
    for (const TimePart& step : steps_of(prediction.waterfall)) {
      put(waterfall, step.key.c_str(), step.time.value());
    }
  }
  Json& provenance = out["provenance"] = Json::object();
  for (int i = 0; i < kProvenances; ++i) {
    put(provenance, name_of(static_cast<Provenance>(i)),
        prediction.provenance[static_cast<std::size_t>(i)]);
  }
  put_figures(out, FigureGroup::kMemory, prediction);
  if (prediction.peak_host > 0) out["peak_host_bytes"] = prediction.peak_host;
  out["rank_classes"] = Json::array();
  for (const RankClass& rank_class : prediction.rank_classes) {
    out["rank_classes"].push_back(class_object(rank_class, memory_categories(prediction)));
  }
  out["critical_path"] = Json::array();
  for (const PathStep& step : prediction.critical_path) {
    Json entry;
    entry["what"] = step.what;
    put(entry, "time_s", step.time.value());
    out["critical_path"].push_back(std::move(entry));
  }
  if (prediction.outer.islands > 0) {
    out["outer"] = outer_object(scenario.training.outer, prediction.outer);
  }
  if (!prediction.beside.steps.empty()) out["other_jobs"] = beside_object(scenario, prediction);
  if (!prediction.collectives.empty()) {
    out["collectives"] = Json::array();
    for (const SentCollective& one : prediction.collectives) {
      out["collectives"].push_back(collective_object(one));
    }
  }
  out["simulated_tasks"] = prediction.simulated_tasks;
  out["resolved"] = Json(to_json(scenario));
  return out;
}

Written prediction_json(const Scenario& scenario, const Prediction& prediction) {
  return json_file(prediction_object(scenario, prediction), 2);
}

}  // namespace stepcast
