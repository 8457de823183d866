// SPDX-License-Identifier: Apache-2.0
#include "replay/graph_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/limits.h"

namespace stepcast {
namespace {

constexpr double kBarrierBytes = 4;  // an all-reduce of one number

// One end of a message.
struct End {
  std::int32_t from, to;
  std::int64_t tag;
  std::int32_t node;
  bool receives;
  auto channel() const { return std::tuple(from, to, tag); }
  auto order() const { return std::tuple(from, to, tag, receives, node); }
};

class Matching {
 public:
  explicit Matching(const ExecutionGraph& graph) : graph_(graph) {}

  Result<GraphMeetings> match() {
    number_nodes();
    match_messages();
    if (errors_.empty()) match_collectives();
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(out_);
  }

 private:
  const GraphNode& node(std::int32_t number) const {
    const std::int32_t rank = out_.rank_of[static_cast<std::size_t>(number)];
    return graph_.ranks[static_cast<std::size_t>(rank)]
        .nodes[static_cast<std::size_t>(out_.place(number))];
  }
  std::string words(std::int32_t number) const {
    return graph_.describe(out_.rank_of[static_cast<std::size_t>(number)], out_.place(number));
  }
  void fail(std::int32_t number, ErrorCode code, std::string message, std::string hint) {
    if (errors_.size() >= kMostErrorsListed) return;
    const auto rank = static_cast<std::size_t>(out_.rank_of[static_cast<std::size_t>(number)]);
    errors_.push_back(
        {code, words(number) + std::move(message), graph_.ranks[rank].file, "", std::move(hint)});
  }

  void number_nodes() {
    const auto count = static_cast<std::size_t>(graph_.nodes());
    out_.rank_of.reserve(count);
    for (std::size_t r = 0; r < graph_.ranks.size(); ++r) {
      out_.first_node.push_back(static_cast<std::int32_t>(out_.rank_of.size()));
      out_.rank_of.resize(out_.rank_of.size() + graph_.ranks[r].nodes.size(),
                          static_cast<std::int32_t>(r));
    }
    out_.first_node.push_back(static_cast<std::int32_t>(out_.rank_of.size()));
    out_.meeting_of.assign(count, kNowhere);
  }

  template <class Visit>
  void for_each_node(Visit&& visit) const {
    for (std::size_t i = 0; i < out_.rank_of.size(); ++i) {
      visit(out_.rank_of[i], static_cast<std::int32_t>(i), node(static_cast<std::int32_t>(i)));
    }
  }

  void meet(std::span<const std::int32_t> nodes, std::int32_t channel, double bytes) {
    const auto number = static_cast<std::int32_t>(out_.meetings.size());
    out_.meetings.push_back({static_cast<std::int32_t>(out_.members.size()),
                             static_cast<std::int32_t>(nodes.size()), channel, bytes});
    for (const std::int32_t one : nodes) {
      out_.members.push_back(one);
      out_.meeting_of[static_cast<std::size_t>(one)] = number;
    }
  }

  void match_messages() {
    std::vector<End> ends;
    for_each_node([&](std::int32_t rank, std::int32_t number, const GraphNode& one) {
      if (one.kind == NodeKind::kSend) ends.push_back({rank, one.peer, one.tag, number, false});
      if (one.kind == NodeKind::kReceive) ends.push_back({one.peer, rank, one.tag, number, true});
    });
    std::ranges::sort(ends, {}, [](const End& end) { return end.order(); });
    for (std::size_t begin = 0; begin < ends.size();) {
      std::size_t end = begin, middle = begin;
      while (end < ends.size() && ends[end].channel() == ends[begin].channel()) {
        if (!ends[end].receives) middle = end + 1;
        ++end;
      }
      match_channel({ends.data() + begin, middle - begin}, {ends.data() + middle, end - middle});
      begin = end;
    }
  }

  void match_channel(std::span<const End> sends, std::span<const End> receives) {
    const std::int32_t channel = out_.channels++;
    const std::size_t count = std::min(sends.size(), receives.size());
    for (std::size_t i = 0; i < count; ++i) {
      const GraphNode &send = node(sends[i].node), &receive = node(receives[i].node);
      if (receive.bytes > send.bytes && out_.roomy_receives++ == 0) {
        out_.roomy_receive =
            fmt::format("{} receives {:.0f} bytes, and {} sends {:.0f}", words(receives[i].node),
                        receive.bytes, words(sends[i].node), send.bytes);
      }
      if (receive.bytes > 0 && receive.bytes < send.bytes) {
        fail(receives[i].node, ErrorCode::kIllegal,
             fmt::format(" receives {:.0f} bytes, and {} sends {:.0f}", receive.bytes,
                         words(sends[i].node), send.bytes),
             "as many bytes as are sent");
      }
      const std::int32_t both[] = {sends[i].node, receives[i].node};
      meet(both, channel, send.bytes);
    }
    if (sends.size() > count) {
      fail(sends[count].node, ErrorCode::kIllegal,
           fmt::format(" sends to rank {} with tag {}, which receives no such message",
                       sends[count].to, sends[count].tag),
           "a receive for each send");
    } else if (receives.size() > count) {
      fail(receives[count].node, ErrorCode::kIllegal,
           fmt::format(" receives from rank {} with tag {}, which sends no such message",
                       receives[count].from, receives[count].tag),
           "a send for each receive");
    }
  }

  void match_collectives() {
    // By group and member: its collectives, in order.
    std::vector<std::vector<std::vector<std::int32_t>>> issued(graph_.groups.size());
    std::unordered_map<std::int32_t, std::size_t> seats;  // of one rank, by group
    std::int32_t seated = kNowhere;
    for_each_node([&](std::int32_t rank, std::int32_t number, const GraphNode& one) {
      if (one.kind != NodeKind::kCollective) return;
      if (rank != seated) seats.clear();
      seated = rank;
      const auto& group = graph_.groups[static_cast<std::size_t>(one.group)];
      auto& members = issued[static_cast<std::size_t>(one.group)];
      if (members.empty()) members.resize(group.size());
      const auto [seat, fresh] = seats.try_emplace(one.group, 0);
      if (fresh) {
        seat->second = static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin());
      }
      members[seat->second].push_back(number);
    });
    for (std::size_t g = 0; g < issued.size() && errors_.empty(); ++g) match_group(g, issued[g]);
  }

  void match_group(std::size_t group, const std::vector<std::vector<std::int32_t>>& issued) {
    if (issued.empty()) return;
    std::size_t most = 0;
    for (std::size_t m = 1; m < issued.size(); ++m) {
      if (issued[m].size() > issued[most].size()) most = m;
    }
    std::vector<std::int32_t> nodes(issued.size());
    for (std::size_t i = 0; i < issued[most].size(); ++i) {
      for (std::size_t m = 0; m < issued.size(); ++m) {
        if (i >= issued[m].size()) {
          return fail(issued[most][i], ErrorCode::kIllegal,
                      fmt::format(" is collective {} of its group of {} ranks, and rank {} has {}",
                                  i + 1, issued.size(), graph_.groups[group][m], issued[m].size()),
                      "every rank of a group issues each of its collectives");
        }
        nodes[m] = issued[m][i];
      }
      if (!match_collective(nodes)) return;
    }
  }

  bool match_collective(std::span<const std::int32_t> nodes) {
    const GraphNode& first = node(nodes.front());
    const bool may_differ = first.collective == GraphCollective::kAllToAll;
    double bytes = first.bytes;
    for (const std::int32_t other : nodes.subspan(1)) {
      const GraphNode& one = node(other);
      if (one.collective != first.collective || (one.bytes != first.bytes && !may_differ)) {
        fail(other, ErrorCode::kIllegal,
             fmt::format(" is {} of {:.0f} bytes, and {}, which it meets, {} of {:.0f}",
                         name_of(one.collective), one.bytes, words(nodes.front()),
                         name_of(first.collective), first.bytes),
             "collectives of a group in one order on all its ranks");
        return false;
      }
      bytes = std::max(bytes, one.bytes);
    }
    if (first.collective == GraphCollective::kBarrier) bytes = kBarrierBytes;
    meet(nodes, kNowhere, bytes);
    return true;
  }

  const ExecutionGraph& graph_;
  GraphMeetings out_;
  Errors errors_;
};

}  // namespace

Result<GraphMeetings> match_nodes(const ExecutionGraph& graph) { return Matching(graph).match(); }

CollectiveKind kind_of(GraphCollective kind) {
  switch (kind) {
    case GraphCollective::kAllReduce:
    case GraphCollective::kBarrier:
      return CollectiveKind::kAllReduce;
    case GraphCollective::kAllGather:
      return CollectiveKind::kAllGather;
    case GraphCollective::kReduceScatter:
    case GraphCollective::kReduceScatterBlock:
      return CollectiveKind::kReduceScatter;
    case GraphCollective::kAllToAll:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kBroadcast;
  }
}

}  // namespace stepcast
