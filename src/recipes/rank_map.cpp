// SPDX-License-Identifier: Apache-2.0
#include "recipes/rank_map.h"

#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/rank_grid.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

template <class Row>
void for_each_rank(const Scenario& s, Row row) {
  const RankGrid grid(s.layout);
  std::int64_t node = -1, gpu = 0;
  for (std::int32_t rank = 0; rank < grid.size(); ++rank) {
    const std::int64_t here = s.cluster.node_of(DeviceId(rank));
    gpu = here == node ? gpu + 1 : 0;
    node = here;
    const GridPoint at = grid.point(RankId(rank));
    row(rank, node, gpu, at, grid.coordinate(Axis::kEp, RankId(rank)),
        grid.coordinate(Axis::kEtp, RankId(rank)));
  }
}

}  // namespace

std::string rank_map_csv(const Scenario& s) {
  std::string out =
      s.model.moe ? "rank,node,gpu,tp,cp,dp,pp,ep,etp\n" : "rank,node,gpu,tp,cp,dp,pp\n";
  for_each_rank(s, [&](std::int32_t rank, std::int64_t node, std::int64_t gpu, const GridPoint& at,
                       std::int32_t ep, std::int32_t etp) {
    out += fmt::format("{},{},{},{},{},{},{}", rank, node, gpu, at.tp, at.cp, at.dp, at.pp);
    if (s.model.moe) out += fmt::format(",{},{}", ep, etp);
    out += "\n";
  });
  return out;
}

std::string rank_map_json(const Scenario& s) {
  Json ranks = Json::array();
  for_each_rank(s, [&](std::int32_t rank, std::int64_t node, std::int64_t gpu, const GridPoint& at,
                       std::int32_t ep, std::int32_t etp) {
    Json row = {{"rank", rank}, {"node", node}, {"gpu", gpu}, {"tp", at.tp},
                {"cp", at.cp},  {"dp", at.dp},  {"pp", at.pp}};
    if (s.model.moe) {
      row["ep"] = ep;
      row["etp"] = etp;
    }
    ranks.push_back(std::move(row));
  });
  const Json out = {{"stepcast_rank_map", 1},
                    {"order", s.layout.order},
                    {"cluster", s.cluster.spec.name},
                    {"ranks", std::move(ranks)}};
  return json_text(out, 1) + "\n";
}

}  // namespace stepcast
