// SPDX-License-Identifier: Apache-2.0
#include "report/html/fabric_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cluster/topology.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr double kFabricWidth = 960, kTierHeight = 58, kFabricMargin = 26, kFabricLeft = 84;
constexpr std::size_t kMostPictured = 4;
constexpr std::size_t kMostOfKind = 24;  // of a kind

// From above.
constexpr std::array kRowsFromAbove{
    VertexKind::kWan,        VertexKind::kCore, VertexKind::kSpine,
    VertexKind::kLeaf,       VertexKind::kNic,  VertexKind::kHost,
    VertexKind::kPcieSwitch, VertexKind::kGpu,  VertexKind::kNvSwitch};

struct Spot {
  double x = 0, y = 0;
};

class FabricDrawing {
 public:
  FabricDrawing(const Topology& topology, const std::vector<double>& busy,
                const std::vector<PicturedNode>& nodes)
      : topology_(topology), busy_(busy), nodes_(nodes) {
    if (nodes_.size() > kMostPictured) nodes_.resize(kMostPictured);
    for (std::size_t v = 0; v < topology.vertices().size(); ++v) {
      const Vertex& vertex = topology.vertices()[v];
      const bool is_shown = std::ranges::any_of(
          nodes_, [&](const PicturedNode& one) { return one.node == vertex.node; });
      if (is_shown) add(VertexId(static_cast<std::int32_t>(v)));
    }
    reach_fabric();
    place();
  }

  Html draw() const {
    Html out;
    for (const auto& [kind, y] : row_y_) {
      out +=
          element("text", {{"x", "0"}, {"y", coordinate(y + 4)}, {"class", "axis"}}, name_of(kind));
    }
    for (const auto& [ends, share] : cables()) out += cable(ends, share);
    for (const auto& [vertex, place] : places_) {
      const bool is_gpu = kind_of(vertex) == VertexKind::kGpu;
      out += element("rect",
                     {{"class", is_gpu ? "fabric-gpu" : "fabric-switch"},
                      {"x", coordinate(place.x - 5)},
                      {"y", coordinate(place.y - 5)},
                      {"width", "10"},
                      {"height", "10"},
                      {"rx", "2"}},
                     element("title", {}, topology_.name(vertex)));
    }
    const double height = kFabricMargin * 2 + kTierHeight * static_cast<double>(row_y_.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      out += element("text",
                     {{"x", coordinate(middle_of(n))},
                      {"y", coordinate(height - 8)},
                      {"class", "axis"},
                      {"text-anchor", "middle"}},
                     nodes_[n].title);
    }
    return element("svg",
                   {{"class", "fabric"},
                    {"role", "img"},
                    {"aria-label", "The fabric with the load of its links"},
                    {"viewBox", fmt::format("0 0 {} {}", kFabricWidth, coordinate(height))}},
                   out);
  }

 private:
  VertexKind kind_of(VertexId vertex) const { return topology_.vertices()[vertex.index()].kind; }

  void add(VertexId vertex) {
    if (shown_.insert(vertex.value).second) by_kind_[kind_of(vertex)].push_back(vertex);
  }

  // Switches that no node owns, as far as there is room for them.
  void reach_fabric() {
    std::vector<VertexId> open;
    for (const auto& [kind, vertices] : by_kind_) {
      open.insert(open.end(), vertices.begin(), vertices.end());
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (const LinkId id : topology_.out_links(open[i])) {
        const VertexId to = topology_.links()[id.index()].to;
        const Vertex& vertex = topology_.vertices()[to.index()];
        if (vertex.node >= 0 || shown_.contains(to.value)) continue;
        if (by_kind_[vertex.kind].size() >= kMostOfKind) continue;
        add(to);
        open.push_back(to);
      }
    }
  }

  double middle_of(std::size_t node) const {
    return kFabricLeft + (kFabricWidth - kFabricLeft) * (static_cast<double>(node) + 0.5) /
                             static_cast<double>(nodes_.size());
  }

  void place() {
    double y = kFabricMargin;
    for (const VertexKind kind : kRowsFromAbove) {
      const auto row = by_kind_.find(kind);
      if (row == by_kind_.end() || row->second.empty()) continue;
      row_y_[kind] = y;
      place_row(row->second, y);
      y += kTierHeight;
    }
  }

  // Parts of a node stand above each other, switches of the fabric over the whole width.
  void place_row(const std::vector<VertexId>& row, double y) {
    std::map<std::int32_t, std::vector<VertexId>> by_node;
    for (const VertexId vertex : row) {
      by_node[topology_.vertices()[vertex.index()].node].push_back(vertex);
    }
    for (const auto& [node, vertices] : by_node) {
      double from = kFabricLeft, width = kFabricWidth - kFabricLeft;
      if (node >= 0) {
        const auto at = std::ranges::find(nodes_, node, &PicturedNode::node) - nodes_.begin();
        width /= static_cast<double>(nodes_.size());
        from += width * static_cast<double>(at);
      }
      const double step = width / static_cast<double>(vertices.size());
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        places_[vertices[i]] = {from + step * (static_cast<double>(i) + 0.5), y};
      }
    }
  }

  using Ends = std::pair<VertexId, VertexId>;
  std::map<Ends, double> cables() const {
    std::map<Ends, double> out;
    for (std::size_t l = 0; l < topology_.links().size(); ++l) {
      const Link& link = topology_.links()[l];
      if (!places_.contains(link.from) || !places_.contains(link.to)) continue;
      double& share = out[std::minmax(link.from, link.to)];
      share = std::max(share, l < busy_.size() ? busy_[l] : 0.0);
    }
    return out;
  }

  Html cable(const Ends& ends, double share) const {
    const Spot& a = places_.at(ends.first);
    const Spot& b = places_.at(ends.second);
    const double shown = std::min(1.0, share);
    return element(
        "line",
        {{"class", share > 0 ? "cable busy" : "cable"},
         {"x1", coordinate(a.x)},
         {"y1", coordinate(a.y)},
         {"x2", coordinate(b.x)},
         {"y2", coordinate(b.y)},
         {"stroke-width", coordinate(1 + 4 * shown)},
         {"stroke-opacity", coordinate(0.25 + 0.75 * shown)}},
        element("title", {},
                fmt::format("{} - {}: full for {} of the step", topology_.name(ends.first),
                            topology_.name(ends.second), percent_text(share))));
  }

  const Topology& topology_;
  const std::vector<double>& busy_;
  std::vector<PicturedNode> nodes_;
  std::set<std::int32_t> shown_;
  std::map<VertexKind, std::vector<VertexId>> by_kind_;
  std::map<VertexKind, double> row_y_;
  std::map<VertexId, Spot> places_;
};

}  // namespace

Html fabric_picture(const Topology& topology, const std::vector<double>& busy,
                    const std::vector<PicturedNode>& nodes) {
  return nodes.empty() ? Html() : FabricDrawing(topology, busy, nodes).draw();
}

}  // namespace stepcast::html
