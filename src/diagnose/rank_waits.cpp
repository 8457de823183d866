// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank_waits.h"

#include <algorithm>

#include "core/statistics.h"

namespace stepcast {
namespace {

// The calls of one collective in one step, in order.
using Calls = std::vector<const Activity*>;

std::map<std::int32_t, Calls> calls_in(const Timeline& timeline, const Window& step) {
  std::map<std::int32_t, Calls> out;
  for (const Activity& one : timeline.activities) {
    if (one.kind != ActivityKind::kMessage) continue;
    if (one.end_s > step.begin_s && one.end_s <= step.end_s) out[one.label].push_back(&one);
  }
  return out;
}

bool meet(const Label& label, const RankGrid& grid, RankId a, RankId b) {
  if (!label.message || label.message->group == AxisGroup()) return false;
  if (label.message->kind == CollectiveKind::kSendReceive) return false;  // no common end
  const std::int32_t group = grid.group_of(label.message->group, a);
  return group >= 0 && group == grid.group_of(label.message->group, b);
}

struct Partner {
  RankId rank;
  std::map<std::int32_t, Calls> calls = {};
  double ahead_s = 0;  // of its clock
};

}  // namespace

RankWaits waits_of(const std::vector<Timeline>& timelines, const std::vector<Window>& steps,
                   std::size_t own, const Labels& labels, const RankGrid& grid) {
  const RankId rank = timelines[own].rank;
  const auto calls = calls_in(timelines[own], steps[own]);
  std::vector<Partner> partners;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    if (i == own) continue;
    Partner one{timelines[i].rank, calls_in(timelines[i], steps[i])};
    std::vector<double> ahead;
    for (const auto& [label, mine] : calls) {
      const auto theirs = one.calls.find(label);
      if (!meet(labels[label], grid, rank, one.rank) || theirs == one.calls.end()) continue;
      if (theirs->second.size() != mine.size()) continue;
      for (std::size_t k = 0; k < mine.size(); ++k) {
        ahead.push_back(theirs->second[k]->end_s - mine[k]->end_s);
      }
    }
    if (ahead.empty()) continue;
    one.ahead_s = median(ahead);
    partners.push_back(std::move(one));
  }
  RankWaits out;
  for (const auto& [label, mine] : calls) {
    for (std::size_t k = 0; k < mine.size(); ++k) {
      double last = mine[k]->begin_s;
      std::optional<RankId> last_rank;
      bool is_matched = false;
      for (const Partner& partner : partners) {
        const auto theirs = partner.calls.find(label);
        if (!meet(labels[label], grid, rank, partner.rank) || theirs == partner.calls.end()) {
          continue;
        }
        if (theirs->second.size() != mine.size()) continue;
        is_matched = true;
        const double arrival = theirs->second[k]->begin_s - partner.ahead_s;
        if (arrival <= last) continue;
        last = arrival;
        last_rank = partner.rank;
      }
      out.matched += is_matched ? 1 : 0;
      if (!last_rank) continue;
      const double waited = std::min(last, mine[k]->end_s) - mine[k]->begin_s;
      out.waited_s[label] += waited;
      out.caused_s[*last_rank] += waited;
    }
  }
  return out;
}

}  // namespace stepcast
