// SPDX-License-Identifier: Apache-2.0
#include "replay/graph_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "calibrate/import/bus_bandwidth.h"
#include "replay/graph_meetings.h"
#include "replay/graph_workload.h"
#include "sim/engine.h"

namespace stepcast {
namespace {

using Span = std::pair<std::int64_t, std::int64_t>;  // ps
enum Part : std::size_t { kComputing, kSending, kHosting, kWaiting, kParts };

// Nodes and words of a task for the engine's errors, which a sound graph never meets.
std::string describe_task(sim::TaskId task, const void*) {
  return fmt::format("task {} of the graph", task.value);
}

std::int64_t union_length(std::vector<Span>& spans) {
  std::ranges::sort(spans);
  std::int64_t out = 0, end = 0;
  for (const Span& one : spans) {
    out += std::max<std::int64_t>(0, one.second - std::max(one.first, end));
    end = std::max(end, one.second);
  }
  return out;
}

class Reader {
 public:
  Reader(const ExecutionGraph& graph, const GraphMeetings& meetings, const GraphWorkload& built,
         const sim::Replay& replay)
      : graph_(graph), meetings_(meetings), built_(built), replay_(replay) {}

  GraphReplay read() {
    read_nodes();
    out_.tasks = static_cast<std::int64_t>(replay_.tasks.size());
    out_.without_work = built_.without_work;
    out_.roomy_receives = meetings_.roomy_receives;
    out_.roomy_receive = meetings_.roomy_receive;
    for (std::size_t r = 0; r < graph_.ranks.size(); ++r) read_rank(r);
    read_messages();
    read_path();
    return std::move(out_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t rank_of(std::int32_t n) const { return meetings_.rank_of[at(n)]; }
  const GraphNode& node(std::int32_t n) const {
    return graph_.ranks[at(rank_of(n))].nodes[at(meetings_.place(n))];
  }
  GraphReplay::NodeTime& time_of(std::int32_t n) {
    return out_.nodes[at(rank_of(n))][at(meetings_.place(n))];
  }

  // When all that the node depends on has ended, or has started where it waits for a start.
  sim::Time ready(std::int32_t n) {
    sim::Time out{0};
    const RankGraph& own = graph_.ranks[at(rank_of(n))];
    for (const GraphDependency& one : own.dependencies_of(node(n))) {
      const std::int32_t before = meetings_.first_node[at(rank_of(n))] + one.node;
      out = std::max(out, one.on_start ? time_of(before).begin : time_of(before).end);
    }
    return out;
  }

  // A node whose work takes no time ends as soon as it is ready: those come in the order in which
  // they wait for each other.
  void read_nodes() {
    out_.nodes.resize(graph_.ranks.size());
    for (std::size_t r = 0; r < graph_.ranks.size(); ++r) {
      out_.nodes[r].resize(graph_.ranks[r].nodes.size());
    }
    for (std::size_t i = 0; i < meetings_.rank_of.size(); ++i) {
      const auto n = static_cast<std::int32_t>(i);
      const sim::TaskId work = built_.work_of[i], end = built_.end_of[i];
      GraphReplay::NodeTime& time = time_of(n);
      if (end.valid()) time.end = replay_.tasks[end.index()].end;
      time.begin = time.end;
      const bool has_work = work.valid() && end.valid();
      if (has_work) time.begin = std::min(time.end, replay_.tasks[work.index()].start);
    }
  }

  void read_rank(std::size_t r) {
    std::array<std::vector<Span>, kParts> spans;
    RankTimes& out = out_.ranks.emplace_back();
    sim::Time last{0};
    const std::int32_t first = meetings_.first_node[r];
    for (std::int32_t n = first; n < meetings_.first_node[r + 1]; ++n) {
      const GraphReplay::NodeTime& time = time_of(n);
      last = std::max(last, time.end);
      const sim::Time begin = std::max(time.begin, ready(n));
      add_span(spans[part_of(node(n))], begin, time.end);
      const bool meets = meetings_.meeting_of[at(n)] != kNowhere && node(n).kind != NodeKind::kSend;
      if (meets) add_span(spans[kWaiting], ready(n), begin);
    }
    std::array<Seconds, kParts> lengths;
    std::vector<Span> all;
    std::int64_t before = 0;
    for (std::size_t p = 0; p < kParts; ++p) {
      all.insert(all.end(), spans[p].begin(), spans[p].end());
      const std::int64_t length = union_length(all);
      lengths[p] = sim::seconds(sim::Duration{length - before});
      before = length;
    }
    out.end = sim::seconds(last);
    out.compute = lengths[kComputing];
    out.communication = lengths[kSending];
    out.host = lengths[kHosting];
    out.waiting = lengths[kWaiting];
    if (out.end > out_.time) {
      out_.time = out.end;
      out_.critical_rank = static_cast<std::int32_t>(r);
    }
    out.idle = sim::seconds(replay_.end) - sim::seconds(sim::Duration{before});
  }

  static Part part_of(const GraphNode& node) {
    switch (node.kind) {
      case NodeKind::kSend:
      case NodeKind::kReceive:
      case NodeKind::kCollective:
        return kSending;
      case NodeKind::kHost:
      case NodeKind::kMemory:
        return kHosting;
      default:
        return kComputing;
    }
  }
  static void add_span(std::vector<Span>& spans, sim::Time begin, sim::Time end) {
    if (end > begin) spans.emplace_back(begin.ps, end.ps);
  }

  std::string words(std::int32_t n) const {
    const GraphNode& one = node(n);
    if (one.kind == NodeKind::kCollective) return name_of(one.collective);
    if (one.kind == NodeKind::kSend || one.kind == NodeKind::kReceive) return "message";
    if (one.name != kNowhere) return graph_.names[at(one.name)];
    return one.kind == NodeKind::kHost     ? "host"
           : one.kind == NodeKind::kMemory ? "memory"
                                           : "compute";
  }

  void read_messages() {
    std::map<std::tuple<std::string, std::int64_t, double>, MessageRow> rows;
    for (std::size_t m = 0; m < meetings_.meetings.size(); ++m) {
      const Meeting& meeting = meetings_.meetings[m];
      const std::int32_t lead = meetings_.members_of(meeting)[0];
      const sim::TaskId task = built_.work_of[at(lead)];
      if (!task.valid()) continue;
      MessageRow& row = rows[{words(lead), meeting.count, meeting.bytes}];
      const sim::Interval& times = replay_.tasks[task.index()];
      ++row.calls;
      row.time += sim::seconds(times.end - times.start);
      row.alone += built_.alone[m];
      row.what = words(lead);
      row.ranks = meeting.count;
      row.bytes = meeting.bytes;
      const CollectiveKind kind =
          meeting.is_message() ? CollectiveKind::kSendReceive : kind_of(node(lead).collective);
      row.bus_bytes_per_s = bus_factor(kind, meeting.count);
    }
    for (auto& [key, row] : rows) {
      const auto calls = static_cast<double>(row.calls);
      row.time = row.time / calls;
      row.alone = row.alone / calls;
      row.bus_bytes_per_s *= row.time.value() > 0 ? row.bytes / row.time.value() : 0;
      out_.messages.push_back(row);
    }
    std::ranges::stable_sort(out_.messages, std::ranges::greater{}, [](const MessageRow& row) {
      return row.time.value() * static_cast<double>(row.calls);
    });
  }

  // The last to end of those that the node waited for, or others of its meeting did, or that came
  // before it on its stream.
  std::int32_t awaited(std::int32_t n) {
    std::int32_t best = kNowhere;
    const auto consider = [&](std::int32_t before) {
      if (before == n) return;
      if (best == kNowhere || time_of(before).end > time_of(best).end) best = before;
    };
    const auto consider_all = [&](std::int32_t of) {
      const RankGraph& own = graph_.ranks[at(rank_of(of))];
      for (const GraphDependency& one : own.dependencies_of(node(of))) {
        consider(meetings_.first_node[at(rank_of(of))] + one.node);
      }
      if (built_.previous[at(of)] != kNowhere) consider(built_.previous[at(of)]);
    };
    consider_all(n);
    const std::int32_t m = meetings_.meeting_of[at(n)];
    if (m != kNowhere && node(n).kind != NodeKind::kSend) {
      for (const std::int32_t member : meetings_.members_of(meetings_.meetings[at(m)])) {
        if (member != n) consider_all(member);
      }
    }
    return best;
  }

  void read_path() {
    std::map<std::string, GraphPathStep> steps;
    std::int32_t n = kNowhere;
    const auto r = at(out_.critical_rank);
    for (std::int32_t i = meetings_.first_node[r]; i < meetings_.first_node[r + 1]; ++i) {
      if (n == kNowhere || time_of(i).end > time_of(n).end) n = i;
    }
    // The way goes back in time or along dependencies, which have no circle: it ends.
    for (std::size_t left = meetings_.rank_of.size(); n != kNowhere && left > 0; --left) {
      const std::int32_t before = awaited(n);
      const sim::Time since = before == kNowhere ? sim::Time{0} : time_of(before).end;
      if (time_of(n).end > since) {
        GraphPathStep& step = steps[words(n)];
        step.what = words(n);
        ++step.nodes;
        step.time += sim::seconds(time_of(n).end - since);
      }
      n = before;
    }
    for (auto& [words, step] : steps) out_.critical_path.push_back(std::move(step));
    std::ranges::stable_sort(out_.critical_path, std::ranges::greater{}, &GraphPathStep::time);
  }

  const ExecutionGraph& graph_;
  const GraphMeetings& meetings_;
  const GraphWorkload& built_;
  const sim::Replay& replay_;
  GraphReplay out_;
};

}  // namespace

Result<GraphReplay> replay_graph(const ExecutionGraph& graph, GraphNetwork& network,
                                 const ReplayRules& rules) {
  const auto ranks = static_cast<std::int64_t>(graph.ranks.size());
  if (ranks > network.ranks()) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("the graph has {} ranks, and {} has {}", ranks, network.name(),
                                network.ranks()),
                    graph.ranks.front().file, "", "a larger cluster: --nodes"});
  }
  const auto meetings = match_nodes(graph);
  if (!meetings) return failure(meetings.error());
  const auto built = build_workload(graph, *meetings, network, rules);
  if (!built) return failure(built.error());
  const auto replayed = sim::replay(built->workload, describe_task);
  if (!replayed) return failure(replayed.error());
  return Reader(graph, *meetings, *built, *replayed).read();
}

}  // namespace stepcast
