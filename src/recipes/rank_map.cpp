// SPDX-License-Identifier: Apache-2.0
// Expert coordinates: Megatron replaces the grid tp x cp x dp of a stage by etp x ep x (the rest),
// in the same order of axes (megatron/core/parallel_state.py, RankGenerator).
#include "recipes/rank_map.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layout/rank_grid.h"

namespace stepcast {
namespace {

struct ExpertPoint {
  std::int64_t ep = 0;
  std::int64_t etp = 0;
};

std::vector<std::string> axes_of(const std::string& order) {
  std::vector<std::string> axes;
  for (std::size_t begin = 0; begin <= order.size();) {
    const std::size_t end = std::min(order.find('-', begin), order.size());
    axes.push_back(order.substr(begin, end - begin));
    begin = end + 1;
  }
  return axes;
}

ExpertPoint expert_point(const Layout& l, const std::vector<std::string>& axes,
                         const GridPoint& at) {
  // The rank's place among those of its stage.
  std::int64_t index = 0, stride = 1;
  for (const std::string& axis : axes) {
    const bool tp = axis == "tp", cp = axis == "cp", dp = axis == "dp";
    index += stride * (tp ? at.tp : cp ? at.cp : dp ? at.dp : 0);
    stride *= tp ? l.tp : cp ? l.cp : dp ? l.dp : 1;
  }
  ExpertPoint out;
  for (const std::string& axis : axes) {
    if (axis == "pp" || axis == "cp") continue;
    const std::int64_t extent = axis == "tp"   ? l.etp
                                : axis == "ep" ? l.ep
                                               : l.tp * l.cp * l.dp / (l.ep * l.etp);
    if (axis == "tp") out.etp = index % extent;
    if (axis == "ep") out.ep = index % extent;
    index /= extent;
  }
  return out;
}

template <class Row>
void for_each_rank(const Scenario& s, Row row) {
  const RankGrid grid(s.layout);
  const auto axes = axes_of(s.layout.order);
  std::int64_t node = -1, gpu = 0;
  for (std::int32_t rank = 0; rank < grid.size(); ++rank) {
    const std::int64_t here = s.cluster.node_of(DeviceId(rank));
    gpu = here == node ? gpu + 1 : 0;
    node = here;
    const GridPoint at = grid.point(RankId(rank));
    row(rank, node, gpu, at, expert_point(s.layout, axes, at));
  }
}

}  // namespace

std::string rank_map_csv(const Scenario& s) {
  std::string out =
      s.model.moe ? "rank,node,gpu,tp,cp,dp,pp,ep,etp\n" : "rank,node,gpu,tp,cp,dp,pp\n";
  for_each_rank(s, [&](std::int32_t rank, std::int64_t node, std::int64_t gpu, const GridPoint& at,
                       const ExpertPoint& expert) {
    out += fmt::format("{},{},{},{},{},{},{}", rank, node, gpu, at.tp, at.cp, at.dp, at.pp);
    if (s.model.moe) out += fmt::format(",{},{}", expert.ep, expert.etp);
    out += "\n";
  });
  return out;
}

std::string rank_map_json(const Scenario& s) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for_each_rank(s, [&](std::int32_t rank, std::int64_t node, std::int64_t gpu, const GridPoint& at,
                       const ExpertPoint& expert) {
    nlohmann::ordered_json row = {{"rank", rank}, {"node", node}, {"gpu", gpu}, {"tp", at.tp},
                                  {"cp", at.cp},  {"dp", at.dp},  {"pp", at.pp}};
    if (s.model.moe) {
      row["ep"] = expert.ep;
      row["etp"] = expert.etp;
    }
    ranks.push_back(std::move(row));
  });
  const nlohmann::ordered_json out = {{"stepcast_rank_map", 1},
                                      {"order", s.layout.order},
                                      {"cluster", s.cluster.spec.name},
                                      {"ranks", std::move(ranks)}};
  return out.dump(1) + "\n";
}

}  // namespace stepcast
