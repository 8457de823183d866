// SPDX-License-Identifier: Apache-2.0
#include "cluster/route_table.h"

#include <algorithm>

namespace stepcast {
namespace {

constexpr std::int32_t kNoStep = -1;

bool is_fabric(const Topology& graph, VertexId vertex) {
  return graph.vertices()[vertex.index()].node < 0;
}

}  // namespace

RouteTable::Masked& RouteTable::of_mask(LinkMask mask) {
  const auto known = std::ranges::find(masked_, mask, &Masked::mask);
  if (known != masked_.end()) return *known;
  masked_.emplace_back().mask = mask;
  return masked_.back();
}

// Reaches all of the GPU's node that no other GPU stands before, and the switches around it.
void RouteTable::search_node(const Topology& graph, VertexId gpu, LinkMask mask, bool outward) {
  place_.resize(graph.vertices().size(), kNoStep);
  steps_.clear();
  const auto look = [&](std::int32_t at, LinkId id) {
    const Link& link = graph.links()[id.index()];
    const VertexId to = outward ? link.to : link.from;
    if ((mask >> static_cast<unsigned>(link.kind) & 1u) == 0) return;
    if (graph.vertices()[to.index()].kind == VertexKind::kGpu) return;
    const std::int32_t depth = at == kNoStep ? 1 : steps_[static_cast<std::size_t>(at)].depth + 1;
    const bool is_only = at == kNoStep || steps_[static_cast<std::size_t>(at)].is_only;
    std::int32_t& place = place_[to.index()];
    if (place == kNoStep) {
      place = static_cast<std::int32_t>(steps_.size());
      steps_.push_back({to, at, id, depth, is_only});
    } else if (Step& known = steps_[static_cast<std::size_t>(place)]; known.depth == depth) {
      known.is_only = false;
    }
  };
  const auto look_around = [&](std::int32_t at, VertexId vertex) {
    for (const LinkId id : outward ? graph.out_links(vertex) : graph.in_links(vertex)) look(at, id);
  };
  look_around(kNoStep, gpu);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const VertexId vertex = steps_[i].vertex;
    if (!is_fabric(graph, vertex)) look_around(static_cast<std::int32_t>(i), vertex);
  }
  for (const Step& step : steps_) place_[step.vertex.index()] = kNoStep;
}

RouteTable::Range RouteTable::exits(const Topology& graph, Side& side, DeviceId device,
                                    LinkMask mask, bool outward) {
  side.of_gpu.resize(graph.gpus().size());
  Range& range = side.of_gpu[device.index()];
  if (range.begin != kNoStep) return range;
  search_node(graph, graph.gpus()[device.index()], mask, outward);
  range.begin = static_cast<std::int32_t>(side.exits.size());
  for (const Step& step : steps_) {
    if (!is_fabric(graph, step.vertex)) continue;
    Range links{static_cast<std::int32_t>(links_.size()), 0};
    for (const Step* at = &step;; at = &steps_[static_cast<std::size_t>(at->before)]) {
      links_.push_back(at->link);
      if (at->before == kNoStep) break;
    }
    links.end = static_cast<std::int32_t>(links_.size());
    side.exits.push_back({step.vertex, step.is_only, links});
  }
  range.end = static_cast<std::int32_t>(side.exits.size());
  return range;
}

const RouteTable::Middle& RouteTable::middle(const Topology& graph, Masked& masked, VertexId from,
                                             VertexId to) {
  const std::uint64_t key = (std::uint64_t{from.index()} << 32) | to.index();
  const auto [known, fresh] = masked.middles.try_emplace(key);
  Middle& out = known->second;
  if (!fresh) return out;
  out.is_there = out.is_only = true;
  out.links.begin = static_cast<std::int32_t>(links_.size());
  if (from != to) {
    const std::vector<LinkShare> shares = shortest_paths(graph, from, to, masked.mask);
    out.is_there = !shares.empty();
    out.is_only = std::ranges::all_of(shares, [](const LinkShare& s) { return s.fraction == 1; });
    for (const LinkShare& share : shares) links_.push_back(share.link);
  }
  out.links.end = static_cast<std::int32_t>(links_.size());
  return out;
}

std::optional<std::vector<LinkShare>> RouteTable::only_path(const Topology& graph, DeviceId from,
                                                            DeviceId to, LinkMask mask) {
  const std::scoped_lock lock(mutex_);
  is_used_ = true;
  Masked& masked = of_mask(mask);
  const Range out = exits(graph, masked.out, from, mask, true);
  const Range in = exits(graph, masked.in, to, mask, false);
  std::int32_t shortest = kNoStep;
  bool is_only = true;
  std::array<Range, 3> parts;
  for (std::int32_t e = out.begin; e < out.end; ++e) {
    const Exit& leaves = masked.out.exits[static_cast<std::size_t>(e)];
    for (std::int32_t f = in.begin; f < in.end; ++f) {
      const Exit& arrives = masked.in.exits[static_cast<std::size_t>(f)];
      const Middle& between = middle(graph, masked, leaves.at, arrives.at);
      if (!between.is_there) continue;
      if (!between.is_only) return std::nullopt;  // and its length is not known
      const std::int32_t hops =
          length(leaves.links) + length(between.links) + length(arrives.links);
      if (shortest != kNoStep && hops > shortest) continue;
      is_only = hops != shortest && leaves.is_only && arrives.is_only;
      shortest = hops;
      parts = {leaves.links, between.links, arrives.links};
    }
  }
  std::vector<LinkShare> path;
  if (shortest == kNoStep) return path;
  if (!is_only) return std::nullopt;
  path.reserve(static_cast<std::size_t>(shortest));
  for (const Range& part : parts) {
    for (std::int32_t l = part.begin; l < part.end; ++l) {
      path.push_back({links_[static_cast<std::size_t>(l)], 1.0});
    }
  }
  return path;
}

}  // namespace stepcast
