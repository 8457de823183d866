// SPDX-License-Identifier: Apache-2.0
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/diagnosis_report.h"
#include "report/prediction_json.h"

namespace stepcast {
namespace {

Json gap_object(const Gap& gap, const Diagnosis& diagnosis) {
  Json out;
  out["cause"] = name_of(gap.cause);
  if (!gap.what.empty()) out["what"] = gap.what;
  put(out, "seconds", gap.seconds);
  put(out, "share", gap.seconds / diagnosis.measured_s);
  put(out, "forecast_s", gap.forecast_s);
  put(out, "measured_s", gap.measured_s);
  put(out, "ratio", gap.ratio);
  if (gap.rank) out["rank"] = gap.rank->value;
  out["sentence"] = gap_sentence(gap, diagnosis);
  out["try"] = gap_remedy(gap);
  return out;
}

Json message_times(const MessageTimes& times, double bandwidth) {
  Json out;
  out["calls"] = times.calls;
  out["late_calls"] = times.late_calls;
  put(out, "bytes", times.bytes);
  put(out, "busy_s", times.busy_s);
  put(out, "exposed_s", times.exposed_s);
  put(out, "bus_bytes_per_s", bandwidth);
  return out;
}

Json message_object(const ComparedMessages& one) {
  Json out;
  out["name"] = one.words;
  if (!one.kind.empty()) out["kind"] = one.kind;
  if (!one.group.empty()) {
    out["group"] = one.group;
    out["ranks"] = one.ranks;
  }
  out["predicted"] = message_times(one.forecast, one.bandwidth(one.forecast));
  out["measured"] = message_times(one.measured, one.bandwidth(one.measured, one.waited_s));
  put(out, "waits_for_ranks_s", one.waited_s);
  return out;
}

Json kernel_times(const KernelTimes& times) {
  Json out;
  out["calls"] = times.calls;
  put(out, "busy_s", times.busy_s);
  return out;
}

Json rank_object(const RankRow& one) {
  Json out;
  out["rank"] = one.rank.value;
  out["stage"] = one.stage;
  put(out, "step_time_s", one.step_s);
  put(out, "compute_s", one.compute_s);
  put(out, "compute_of_forecast", one.ratio);
  put(out, "exposed_s", one.exposed_s);
  put(out, "idle_s", one.idle_s);
  put(out, "others_waited_s", one.caused_s);
  return out;
}

}  // namespace

Written diagnosis_json(const Scenario& scenario, const Prediction& prediction,
                       const Diagnosis& diagnosis) {
  Json out;
  out["stepcast"] = 1;
  out["predicted"] = prediction_object(scenario, prediction);
  Json& measured = out["measured"] = Json::object();
  measured["rank"] = diagnosis.rank.value;
  put(measured, "step_time_s", diagnosis.measured_s);
  measured["steps"] = diagnosis.step_lengths_s.size();
  measured["steps_from"] = name_of(diagnosis.steps_from);
  put(measured, "accounted_fraction", diagnosis.accounted);
  put(measured, "work_of_forecast", diagnosis.batch_ratio);
  put(out, "forecast_step_time_s", diagnosis.forecast_s);
  out["gaps"] = Json::array();
  for (const Gap& gap : diagnosis.gaps) out["gaps"].push_back(gap_object(gap, diagnosis));
  out["parts"] = Json::array();
  for (const ComparedPart& one : diagnosis.parts) {
    Json& part = out["parts"].emplace_back();
    part["key"] = one.key;
    put(part, "predicted_s", one.forecast_s);
    put(part, "measured_s", one.measured_s);
  }
  out["kernels"] = Json::array();
  for (const ComparedKernels& one : diagnosis.kernels) {
    out["kernels"].push_back({{"name", one.words},
                              {"family", name_of(one.family)},
                              {"predicted", kernel_times(one.forecast)},
                              {"measured", kernel_times(one.measured)}});
  }
  out["collectives"] = Json::array();
  for (const ComparedMessages& one : diagnosis.messages) {
    out["collectives"].push_back(message_object(one));
  }
  out["ranks"] = Json::array();
  for (const RankRow& one : diagnosis.ranks) out["ranks"].push_back(rank_object(one));
  out["notes"] = diagnosis.notes;
  return json_file(out, 2);
}

}  // namespace stepcast
