// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/replay_report.h"
#include "report/trace_text.h"

namespace stepcast {
namespace {

struct Track {
  int number;
  const char* name;
};

Track track_of(const GraphNode& node) {
  switch (node.kind) {
    case NodeKind::kHost:
      return {-1, "host"};
    case NodeKind::kMemory:
      return {1, "memory"};
    case NodeKind::kSend:
      return {2, "sends"};
    case NodeKind::kReceive:
      return {3, "receives"};
    case NodeKind::kCollective:
      return {4, "collectives"};
    default:
      return {0, "compute"};
  }
}

// Slices of one track that overlap stand on tracks of their own, so that each track nests.
constexpr int kTracks = 8;

class ReplayTraceWriter {
 public:
  explicit ReplayTraceWriter(const ReplayReport& report) : report_(report) {}

  std::string write(const std::vector<std::int32_t>& ranks) {
    out_.append("{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (const std::int32_t rank : ranks) write_rank(rank);
    out_.append("\n]}}\n");
    return out_.text();
  }

 private:
  void name_process(std::int32_t rank) {
    out_.next();
    out_.append(
        "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": \"rank "
        "{}\"}}}}",
        rank, rank);
  }

  void write_rank(std::int32_t rank) {
    name_process(rank);
    const RankGraph& own = report_.graph.ranks[static_cast<std::size_t>(rank)];
    const auto& times = report_.replay.nodes[static_cast<std::size_t>(rank)];
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < own.nodes.size(); ++i) {
      if (times[i].end > times[i].begin) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return times[i].begin; });
    std::map<int, sim::Time> busy_until;  // by track
    for (const std::size_t i : order) {
      const Track track = track_of(own.nodes[i]);
      int number = track.number * kTracks;
      while (busy_until.contains(number) && busy_until[number] > times[i].begin) ++number;
      if (!busy_until.contains(number)) name_track(rank, number, track.name);
      busy_until[number] = times[i].end;
      write_slice(rank, number, own.nodes[i], times[i]);
    }
  }

  void name_track(std::int32_t rank, int track, const char* name) {
    out_.next();
    out_.append(
        "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": "
        "{{\"name\": \"{}\"}}}}",
        rank, track, name);
  }

  // Profiler tools take as communication what NCCL would have named.
  std::string slice_name(const GraphNode& node) const {
    if (node.kind == NodeKind::kSend || node.kind == NodeKind::kReceive) {
      return "ncclDevKernel_SendRecv";
    }
    if (node.kind == NodeKind::kCollective) {
      return fmt::format("ncclDevKernel_{}", name_of(node.collective));
    }
    if (node.name == kNowhere) return track_of(node).name;
    return report_.graph.names[static_cast<std::size_t>(node.name)];
  }

  void write_slice(std::int32_t rank, int track, const GraphNode& node,
                   const GraphReplay::NodeTime& time) {
    out_.next();
    const bool is_host = node.kind == NodeKind::kHost;
    out_.append(
        "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{\"node\": {}, \"stream\": {}",
        is_host ? "cpu_op" : "kernel", json_literal(slice_name(node)), rank, track,
        trace_time(time.begin.ps), trace_time((time.end - time.begin).ps), node.id,
        is_host ? -1 : track);
    if (node.kind == NodeKind::kCollective) {
      const auto& group = report_.graph.groups[static_cast<std::size_t>(node.group)];
      out_.append(", \"Collective name\": \"{}\", \"Group size\": {}", name_of(node.collective),
                  group.size());
    } else if (node.peer != kNowhere) {
      out_.append(", \"Collective name\": \"{}\", \"peer\": {}, \"tag\": {}",
                  node.kind == NodeKind::kSend ? "send" : "recv", node.peer, node.tag);
    }
    out_.append(", \"bytes\": {:.0f}}}}}", node.bytes);
  }

  const ReplayReport& report_;
  TraceText out_;
};

}  // namespace

Written replay_trace_json(const ReplayReport& report, const std::vector<std::int32_t>& ranks) {
  return Written::escaped(ReplayTraceWriter(report).write(ranks));
}

}  // namespace stepcast
