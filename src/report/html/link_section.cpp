// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/time_parts.h"
#include "report/html/fabric_picture.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr std::size_t kMostRows = 64;   // of nodes that differ
constexpr std::size_t kMostLinks = 16;  // strips in one cell

// Links of one tier join the same kinds of vertices.
using Tier = std::tuple<LinkKind, VertexKind, VertexKind>;

struct NodeRow {
  std::vector<std::int64_t> nodes;              // -1: the fabric
  std::vector<std::vector<std::size_t>> links;  // by tier, of the first node
  double hottest = 0;
};

struct HeatMap {
  std::vector<Tier> tiers;
  std::vector<NodeRow> rows;
};

std::int64_t node_of(const Topology& topology, const Link& link) {
  const std::int64_t from = topology.vertices()[link.from.index()].node;
  return from >= 0 ? from : topology.vertices()[link.to.index()].node;
}

Tier tier_of(const Topology& topology, const Link& link) {
  const auto& vertices = topology.vertices();
  return {link.kind, vertices[link.from.index()].kind, vertices[link.to.index()].kind};
}

// Nodes whose links are alike, to a ten-thousandth of a step, are one row.
HeatMap heat_map_of(const Topology& topology, const std::vector<double>& shares) {
  std::map<Tier, bool> used;
  for (std::size_t l = 0; l < shares.size(); ++l) {
    if (shares[l] > 0) used[tier_of(topology, topology.links()[l])] = true;
  }
  HeatMap out;
  std::map<Tier, std::size_t> column;
  for (const auto& [tier, some] : used) {
    column[tier] = out.tiers.size();
    out.tiers.push_back(tier);
  }
  std::map<std::int64_t, std::vector<std::vector<std::size_t>>> by_node;
  for (std::size_t l = 0; l < shares.size(); ++l) {
    const Link& link = topology.links()[l];
    const auto found = column.find(tier_of(topology, link));
    if (found == column.end()) continue;
    auto& links = by_node[node_of(topology, link)];
    links.resize(out.tiers.size());
    links[found->second].push_back(l);
  }
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (auto& [node, links] : by_node) {
    std::vector<std::int64_t> signature{node < 0 ? 1 : 0};
    double hottest = 0;
    for (const auto& tier : links) {
      signature.push_back(-1);
      for (const std::size_t l : tier) {
        signature.push_back(std::llround(shares[l] * 1e4));
        hottest = std::max(hottest, shares[l]);
      }
    }
    const auto [at, fresh] = known.try_emplace(std::move(signature), out.rows.size());
    if (fresh) out.rows.push_back({{}, std::move(links), hottest});
    out.rows[at->second].nodes.push_back(node);
  }
  return out;
}

std::string row_title(const NodeRow& row) {
  if (row.nodes.front() < 0) return "fabric";
  std::vector<RankId> numbers;
  for (const std::int64_t node : row.nodes) numbers.emplace_back(static_cast<std::int32_t>(node));
  return (row.nodes.size() == 1 ? "node " : "nodes ") + ranks_text(numbers);
}

// One of each row, the hottest first; two where all nodes are alike, so that the way between them
// shows.
std::vector<PicturedNode> pictured(const HeatMap& map) {
  std::vector<PicturedNode> out;
  for (const NodeRow& row : map.rows) {
    if (row.nodes.front() >= 0) out.push_back({row.nodes.front(), row_title(row)});
  }
  const auto only =
      std::ranges::find_if(map.rows, [](const NodeRow& row) { return row.nodes.front() >= 0; });
  if (out.size() == 1 && only->nodes.size() > 1) {
    out.front().title = fmt::format("node {}", only->nodes.front());
    out.push_back({only->nodes.back(), fmt::format("node {}", only->nodes.back())});
  }
  return out;
}

// A strip per link, the hottest first where there are too many.
Html cell(const Topology& topology, const std::vector<double>& shares,
          std::vector<std::size_t> links) {
  if (links.empty()) return element("td", {{"class", "cell"}});
  double hottest = 0;
  for (const std::size_t l : links) hottest = std::max(hottest, shares[l]);
  if (links.size() > kMostLinks) {
    std::stable_sort(links.begin(), links.end(),
                     [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
    links.resize(kMostLinks);
  }
  Html strips;
  const double width = 1 / static_cast<double>(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const double share = shares[links[i]];
    strips += element(
        "rect",
        {{"x", percent_of_width(static_cast<double>(i) * width)},
         {"width", percent_of_width(width * 0.9)},
         {"height", "100%"},
         {"fill-opacity", coordinate(0.06 + 0.94 * std::min(1.0, share))}},
        element("title", {},
                fmt::format("{}: {}", topology.name(LinkId(links[i])), percent_text(share))));
  }
  const std::string shown = percent_text(hottest);
  return element("td", {{"class", "cell"}},
                 element("svg", {{"role", "img"}, {"aria-label", shown}}, strips) + text(shown));
}

Html table_of(const Topology& topology, const std::vector<double>& shares, const HeatMap& map) {
  Html titles = element("th", {{"scope", "col"}}, "where");
  for (const Tier& tier : map.tiers) {
    const VertexKind from = std::get<1>(tier), to = std::get<2>(tier);
    titles += element("th", {{"scope", "col"}}, fmt::format("{} → {}", name_of(from), name_of(to)));
  }
  Html rows;
  for (std::size_t r = 0; r < std::min(map.rows.size(), kMostRows); ++r) {
    Html cells = element("th", {{"scope", "row"}}, row_title(map.rows[r]));
    for (const auto& links : map.rows[r].links) cells += cell(topology, shares, links);
    rows += element("tr", {}, cells);
  }
  const Html table =
      element("table", {{"class", "heat"}},
              element("caption", {}, "Busiest link of each kind, a strip for each link") +
                  element("thead", {}, element("tr", {}, titles)) + element("tbody", {}, rows));
  return element("div",
                 {{"class", "scroll"},
                  {"tabindex", "0"},
                  {"role", "region"},
                  {"aria-label", "Load of the links"}},
                 table);
}

// "expert parallel 48.9 %, data parallel 1.0 %", of one link; the most first.
std::string loads_text(const LinkTime& use, Seconds step) {
  constexpr std::string_view kExposed = "exposed ";  // in the words of a part of time
  std::vector<std::pair<Seconds, std::string_view>> loads{{use.others, "other traffic"}};
  for (const TimePartRow& row : kTimeParts) {
    if (!row.traffic) continue;
    loads.emplace_back(use.by_traffic[static_cast<std::size_t>(*row.traffic)],
                       std::string_view(row.words).substr(kExposed.size()));
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [time, words] : loads) {
    if (time / step < 0.0005) continue;  // 0.0 %
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words, percent_text(time / step));
  }
  return out;
}

}  // namespace

Section link_section(const Scenario& scenario, const Prediction& prediction) {
  const Topology& topology = scenario.cluster.topology;
  std::vector<double> shares;
  for (const LinkTime& use : prediction.link_use) {
    shares.push_back(use.all() / prediction.step_time);
  }
  HeatMap map = heat_map_of(topology, shares);
  Html body;
  if (map.rows.empty()) {
    body = paragraph("No traffic of this step loads a link of the cluster's graph.");
  } else {
    std::stable_sort(map.rows.begin(), map.rows.end(),
                     [](const NodeRow& a, const NodeRow& b) { return a.hottest > b.hottest; });
    body = fabric_picture(topology, shares, pictured(map)) + table_of(topology, shares, map);
    if (map.rows.size() > kMostRows) {
      body += note(fmt::format("And {} other rows, less loaded.", map.rows.size() - kMostRows));
    }
    const auto busiest =
        static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
    body += note(fmt::format(
        "Share of the step for which a link would be full, carrying all that the step sends over "
        "it at the pace that the library reaches; one direction each. The busiest, {}, carries {}.",
        topology.name(LinkId(busiest)),
        loads_text(prediction.link_use[busiest], prediction.step_time)));
  }
  return {"links", "Load of the links", body};
}

}  // namespace stepcast::html
