// SPDX-License-Identifier: Apache-2.0
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/prediction_json.h"
#include "report/replay_report.h"

namespace stepcast {
namespace {

Json rank_object(const RankTimes& times, std::size_t rank) {
  Json out;
  out["rank"] = rank;
  put(out, "end_s", times.end.value());
  put(out, "compute_s", times.compute.value());
  put(out, "communication_s", times.communication.value());
  put(out, "host_s", times.host.value());
  put(out, "waiting_s", times.waiting.value());
  put(out, "idle_s", times.idle.value());
  return out;
}

Json message_object(const MessageRow& row) {
  Json out;
  out["what"] = row.what;
  out["ranks"] = row.ranks;
  put(out, "bytes", row.bytes);
  out["calls"] = row.calls;
  put(out, "time_s", row.time.value());
  put(out, "alone_s", row.alone.value());
  put(out, "bus_bytes_per_s", row.bus_bytes_per_s);
  return out;
}

Json path_object(const GraphPathStep& step) {
  Json out;
  out["what"] = step.what;
  out["nodes"] = step.nodes;
  put(out, "time_s", step.time.value());
  return out;
}

const char* source_name(TimeSource source) {
  return source == TimeSource::kFile ? "file" : "model";
}

}  // namespace

Written replay_json(const ReplayReport& report) {
  const GraphReplay& replay = report.replay;
  Json out;
  out["format"] = 1;
  out["graph"]["source"] = report.source;
  out["graph"]["form"] = report.graph.format;
  out["graph"]["ranks"] = replay.ranks.size();
  out["graph"]["nodes"] = report.graph.nodes();
  out["network"] = report.network;
  out["gpus"] = report.places;
  out["compute"] = source_name(report.rules.compute);
  out["communication"] = source_name(report.rules.communication);
  put(out, "time_s", replay.time.value());
  out["critical_rank"] = replay.critical_rank;
  out["tasks"] = replay.tasks;
  out["ranks"] = Json::array();
  for (std::size_t r = 0; r < replay.ranks.size(); ++r) {
    out["ranks"].push_back(rank_object(replay.ranks[r], r));
  }
  out["messages"] = Json::array();
  for (const MessageRow& row : replay.messages) out["messages"].push_back(message_object(row));
  out["critical_path"] = Json::array();
  for (const GraphPathStep& step : replay.critical_path) {
    out["critical_path"].push_back(path_object(step));
  }
  return json_file(out, 2);
}

}  // namespace stepcast
