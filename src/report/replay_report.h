// SPDX-License-Identifier: Apache-2.0
// A replayed graph as text, JSON, CSV and a trace (docs/replay.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/written.h"
#include "graphs/execution_graph.h"
#include "replay/graph_replay.h"
#include "report/document_form.h"

namespace stepcast {

struct ReplayReport {
  const ExecutionGraph& graph;
  const GraphReplay& replay;
  const ReplayRules& rules;
  std::string source;   // the files, in words
  std::string network;  // the cluster's name, or that of a network file
  std::int64_t places;  // GPUs that it has
};

Written replay_text(const ReplayReport& report, Form form);
Written replay_json(const ReplayReport& report);
Written replay_csv(const ReplayReport& report);  // one row per rank

// In the form of a forecast's trace (report/trace.h): one process per rank of `ranks`, one thread
// per stream.
Written replay_trace_json(const ReplayReport& report, const std::vector<std::int32_t>& ranks);

}  // namespace stepcast
