// SPDX-License-Identifier: Apache-2.0
#include "cluster/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cluster/cluster.h"
#include "core/json.h"
#include "core/read_rows.h"
#include "core/row_types.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostPlanes = 16;
constexpr std::int64_t kMostUplinks = 1024;
constexpr std::int64_t kMostSwitchLinks = 1 << 21;

// The longest way round a ring of `size` between two of these places.
std::int64_t longest_on_ring(std::vector<std::int64_t> places, std::int64_t size) {
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::int64_t longest = 0;
  const auto count = static_cast<std::int64_t>(places.size());
  for (const std::int64_t from : places) {
    // The farthest stands next to the place across, on either side of it.
    const auto across = std::ranges::lower_bound(places, (from + size / 2) % size);
    for (std::int64_t step = -1; step <= 0; ++step) {
      const std::int64_t at = (across - places.begin() + step + count) % count;
      const std::int64_t apart = (places[static_cast<std::size_t>(at)] - from + size) % size;
      longest = std::max(longest, std::min(apart, size - apart));
    }
  }
  return longest;
}

// Routers that shortest ways in a torus join are as far apart as their coordinates are together.
std::int64_t links_in_torus(const Fabric& fabric, std::span<const std::int64_t> nodes) {
  std::vector<std::int64_t> routers;
  for (const std::int64_t node : nodes) {
    routers.push_back(fabric.place_of(node) / fabric.nodes_per_router);
  }
  std::int64_t out = 0;
  for (const std::int64_t size : fabric.torus) {
    std::vector<std::int64_t> on_ring;
    for (std::int64_t& router : routers) {
      on_ring.push_back(router % size);
      router /= size;
    }
    out += longest_on_ring(std::move(on_ring), size);
  }
  return out;
}

bool is_fat_tree(const Fabric& fabric) { return fabric.kind == FabricKind::kFatTree; }
bool is_dragonfly(const Fabric& fabric) { return fabric.kind == FabricKind::kDragonfly; }
bool is_torus(const Fabric& fabric) { return fabric.kind == FabricKind::kTorus; }
bool has_routers(const Fabric& fabric) { return !is_fat_tree(fabric); }

struct KeyOfFabrics {
  const char* key;
  bool (*is_of)(const Fabric& fabric);
  const char* fabrics;
};
constexpr KeyOfFabrics kKeysOfFabrics[] = {{"rail_optimised", is_fat_tree, "fat_tree"},
                                           {"rails_joined", is_fat_tree, "fat_tree"},
                                           {"nodes_per_leaf_group", is_fat_tree, "fat_tree"},
                                           {"oversubscription", is_fat_tree, "fat_tree"},
                                           {"pod_nodes", is_fat_tree, "fat_tree"},
                                           {"pod_oversubscription", is_fat_tree, "fat_tree"},
                                           {"ecmp", is_fat_tree, "fat_tree"},
                                           {"nodes_per_router", has_routers, "dragonfly or torus"},
                                           {"router_link", has_routers, "dragonfly or torus"},
                                           {"routers_per_group", is_dragonfly, "dragonfly"},
                                           {"global_links", is_dragonfly, "dragonfly"},
                                           {"global_link", is_dragonfly, "dragonfly"},
                                           {"torus", is_torus, "torus"}};

// Cables between the routers of one plane.
std::int64_t switch_cables(const Fabric& fabric, std::int64_t places) {
  const std::int64_t routers = fabric.routers(places);
  if (is_torus(fabric)) return routers * static_cast<std::int64_t>(fabric.torus.size());
  const std::int64_t of_group = fabric.routers_per_group, groups = routers / of_group;
  return routers * (of_group - 1) / 2 +
         groups * (groups - 1) / 2 * std::min(fabric.global_links, of_group);
}

void check_routers(ObjectReader& reader, const ClusterSpec& spec) {
  const Fabric& fabric = spec.fabric;
  const auto require = [&](const char* key, bool stands, const char* hint) {
    if (!stands) {
      reader.fail(key, ErrorCode::kMissingKey,
                  fmt::format("is required by a {} and missing", name_of(fabric.kind)), hint);
    }
  };
  require("router_link", fabric.router_link.value() > 0,
          "the rate of a cable between two routers, such as \"200 Gb/s\"");
  if (is_dragonfly(fabric)) {
    require("global_link", fabric.global_link.value() > 0,
            "the rate of a cable between two groups, such as \"200 Gb/s\"");
  }
  const std::int64_t places = fabric.places_of(spec.nodes);
  if (is_torus(fabric)) {
    require("torus", !fabric.torus.empty(), "the routers in each dimension, such as [4, 4, 2]");
    const std::int64_t room = fabric.routers(places) * fabric.nodes_per_router;
    if (!fabric.torus.empty() && room < places) {
      reader.fail("torus", ErrorCode::kIllegal,
                  fmt::format("{} routers with {} node{} each have no place for {} nodes",
                              fabric.routers(places), fabric.nodes_per_router,
                              fabric.nodes_per_router == 1 ? "" : "s", places),
                  "dimensions whose product covers the nodes, or more nodes_per_router");
    }
  }
  if (switch_cables(fabric, places) * fabric.planes > kMostSwitchLinks) {
    reader.fail(is_torus(fabric) ? "torus" : "routers_per_group", ErrorCode::kBadValue,
                fmt::format("{} cables between routers are more than this program takes",
                            switch_cables(fabric, places) * fabric.planes),
                fmt::format("at most {}, as with more nodes_per_router", kMostSwitchLinks));
  }
}

void check_hash(ObjectReader& reader, const Fabric& fabric) {
  if (fabric.is_hashed() && fabric.uplinks == 0) {
    reader.fail("uplinks", ErrorCode::kMissingKey, "is required by hashed ecmp and missing",
                "how many cables lead up from a leaf");
  }
  for (const char* key : {"uplinks", "ecmp_flows", "ecmp_seed"}) {
    if (fabric.is_hashed() || !reader.has(key)) continue;
    reader.fail(key, ErrorCode::kIllegal, "is of hashed ecmp, and this one is even",
                "leave it out, or state \"ecmp\": \"hashed\"");
  }
}

// Sites are of trees of joined rails so far.
void check_sites_of_fabric(ObjectReader& reader, const ClusterSpec& spec) {
  const Fabric& fabric = spec.fabric;
  if (spec.sites == 1) return;
  const auto refuse = [&](bool stands, const char* what) {
    if (!stands) return;
    reader.fail("sites", ErrorCode::kNotSupported,
                fmt::format("several sites and {} in one cluster are not supported yet", what),
                "one site, or leave the other out");
  };
  refuse(has_routers(fabric), "a dragonfly or torus");
  refuse(fabric.planes > 1, "several planes");
  refuse(!fabric.rails_joined, "rails that are not joined");
  refuse(fabric.is_hashed(), "hashed flows");
  refuse(!fabric.places.empty() || !fabric.devices.empty(), "a placement");
}

// A base places its own number of nodes.
void check_places(ObjectReader& reader, const ClusterSpec& spec) {
  const Fabric& fabric = spec.fabric;
  const auto differ = [&](std::size_t listed, std::int64_t there, const char* what) {
    if (listed == 0 || static_cast<std::int64_t>(listed) == there) return;
    reader.fail("place", ErrorCode::kIllegal,
                fmt::format("names {} {}, and the cluster has {}", listed, what, there),
                "place them anew");
  };
  differ(fabric.places.size(), spec.nodes, "nodes");
  differ(fabric.devices.size(), spec.gpus, "GPUs");
  const std::int64_t taken = fabric.places_of(spec.nodes);
  const std::int64_t leaves = (taken + spec.nodes_per_leaf_group - 1) / spec.nodes_per_leaf_group;
  const std::int64_t rails = spec.rail_optimised ? spec.nics_per_node : 1;
  const bool is_far = taken > kMaxGpus || leaves * rails * fabric.planes > kMostSwitchLinks;
  if (fabric.places.empty() || !is_far) return;
  reader.fail("place", ErrorCode::kBadValue,
              fmt::format("node{} is beyond what this program takes", taken - 1),
              "count the nodes from the first leaf of the job on");
}

}  // namespace

const char* name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::kFatTree:
      return "fat_tree";
    case FabricKind::kDragonfly:
      return "dragonfly";
    case FabricKind::kTorus:
      return "torus";
  }
  return "";
}

const char* name_of(Ecmp ecmp) { return ecmp == Ecmp::kEven ? "even" : "hashed"; }

Rows Fabric::fields() {
  using F = Fabric;
  static constexpr Row all[] = {
      row<&F::kind>("fabric").unless_usual().says("how switches are joined"),
      row<&F::planes>("planes")
          .within(1, kMostPlanes)
          .unless_usual()
          .says("networks side by side; a NIC has a port of its rate / planes in each"),
      row<&F::rails_joined>("rails_joined")
          .unless_usual()
          .says("false: no spine joins the rails, each is a network of its own"),
      row<&F::nodes_per_router>("nodes_per_router")
          .within(1, kMaxGpus)
          .unless_usual()
          .says("of a dragonfly or torus"),
      row<&F::router_link>("router_link")
          .with_unit()
          .positive()
          .unless_usual()
          .says("of a dragonfly or torus: a cable between two routers, per direction"),
      row<&F::routers_per_group>("routers_per_group")
          .within(1, kMaxGpus)
          .unless_usual()
          .says("of a dragonfly"),
      row<&F::global_links>("global_links")
          .within(1, kMaxGpus)
          .unless_usual()
          .says("of a dragonfly: cables between two groups"),
      row<&F::global_link>("global_link")
          .with_unit()
          .positive()
          .unless_usual()
          .says("of a dragonfly: a cable between two groups, per direction"),
      row<&F::torus>("torus")
          .within(1, kMaxGpus)
          .unless_usual()
          .says("routers in each dimension, such as [4, 4, 2]"),
      row<&F::ecmp>("ecmp").unless_usual().says(
          "even: traffic spreads over a leaf's uplinks; hashed: each flow takes one of them"),
      row<&F::uplinks>("uplinks")
          .within(1, kMostUplinks)
          .unless_usual()
          .says("cables from a leaf up, where ecmp is hashed"),
      row<&F::ecmp_flows>("ecmp_flows")
          .within(1, kMostUplinks)
          .unless_usual()
          .says("flows from one GPU to another over one NIC, where ecmp is hashed"),
      row<&F::ecmp_seed>("ecmp_seed")
          .within(0, 1e15)
          .unless_usual()
          .says("of the hash, where ecmp is hashed")};
  return rows_of<Fabric>(all);
}

void read_fabric_fields(ObjectReader& reader, ClusterSpec& spec) {
  // Another kind than the base's begins anew.
  Fabric& fabric = spec.fabric;
  const auto stated = reader.value("fabric");
  if (stated && stated->is_text() && *stated->text() != name_of(fabric.kind)) {
    Fabric anew;
    anew.planes = fabric.planes;
    anew.places = std::move(fabric.places);
    anew.devices = std::move(fabric.devices);
    anew.hosts = std::move(fabric.hosts);
    fabric = std::move(anew);
  }
  const std::vector<std::int64_t> torus = std::move(fabric.torus);
  fabric.torus.clear();
  read_keys(reader, fabric);
  if (!reader.has("torus")) fabric.torus = torus;
  if (fabric.is_hashed()) return;
  fabric.uplinks = 0;  // those of a base whose flows were hashed
  fabric.ecmp_flows = 1;
  fabric.ecmp_seed = 0;
}

void check_fabric(ObjectReader& reader, const ClusterSpec& spec) {
  const Fabric& fabric = spec.fabric;
  for (const auto& [key, is_of, fabrics] : kKeysOfFabrics) {
    if (!reader.has(key) || is_of(fabric)) continue;
    reader.fail(key, ErrorCode::kIllegal,
                fmt::format("is a key of the fabric {}, and this one is a {}", fabrics,
                            name_of(fabric.kind)),
                "leave it out, or state \"fabric\"");
  }
  if (!fabric.rails_joined && !spec.rail_optimised) {
    reader.fail("rails_joined", ErrorCode::kIllegal, "one leaf for all NICs has no rails",
                "rail_optimised true");
  }
  check_hash(reader, fabric);
  check_sites_of_fabric(reader, spec);
  if (reader.ok()) check_places(reader, spec);
  if (has_routers(fabric) && reader.ok()) check_routers(reader, spec);
}

std::int64_t Fabric::places_of(std::int64_t nodes) const {
  std::int64_t out = 0;
  if (places.empty()) return nodes;
  for (std::int64_t node = 0; node < nodes; ++node) out = std::max(out, place_of(node) + 1);
  return out;
}

std::int64_t Fabric::routers(std::int64_t places_taken) const {
  std::int64_t out = 1;
  if (kind == FabricKind::kTorus) {
    for (const std::int64_t size : torus) out = std::min(out * size, kMaxGpus * 8);
  } else {
    const std::int64_t of_group = nodes_per_router * routers_per_group;
    out = (places_taken + of_group - 1) / of_group * routers_per_group;
  }
  return out;
}

std::int64_t links_between_switches(const ClusterSpec& spec, std::span<const std::int64_t> nodes) {
  const Fabric& fabric = spec.fabric;
  if (nodes.empty()) return 0;
  if (fabric.kind == FabricKind::kTorus) return links_in_torus(fabric, nodes);
  const std::int64_t of_site = spec.nodes_per_site();
  std::int64_t low = fabric.place_of(nodes.front()), high = low;
  for (const std::int64_t node : nodes) {
    low = std::min(low, fabric.place_of(node));
    high = std::max(high, fabric.place_of(node));
  }
  const auto together = [&](std::int64_t size) { return low / size == high / size; };
  if (spec.sites > 1 && !together(of_site)) {  // all tiers of a site, and of another
    if (spec.pod_nodes > 0 && of_site > spec.pod_nodes) return 4;
    const bool has_one_leaf =
        of_site <= spec.nodes_per_leaf_group && (spec.nics_per_node == 1 || !spec.rail_optimised);
    return has_one_leaf ? 0 : 2;
  }
  if (spec.sites > 1) {
    low %= of_site;
    high %= of_site;
  }
  if (fabric.kind == FabricKind::kDragonfly) {
    if (together(fabric.nodes_per_router)) return 0;
    if (together(fabric.nodes_per_router * fabric.routers_per_group)) return 1;
    return fabric.routers_per_group > 1 ? 3 : 1;
  }
  if (together(spec.nodes_per_leaf_group)) return 0;
  return spec.pod_nodes == 0 || together(spec.pod_nodes) ? 2 : 4;
}

}  // namespace stepcast
