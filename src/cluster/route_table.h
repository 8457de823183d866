// SPDX-License-Identifier: Apache-2.0
// The ways between GPUs of different nodes, put together from parts that many of them share: out of
// the sender's node to a switch of the fabric, from there to another switch, and into the
// receiver's node. A part is looked for once. It holds for graphs in which nodes meet at switches
// alone, and gives a way only where it is the only shortest one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cluster/topology.h"

namespace stepcast {

using LinkMask = unsigned;  // a bit for each LinkKind

// Fractions of all shortest paths from one vertex to another over the links of `mask`, past no GPU;
// empty when there is none. Both ends search until they meet.
std::vector<LinkShare> shortest_paths(const Topology& graph, VertexId from, VertexId to,
                                      LinkMask mask);

// For several threads.
class RouteTable {
 public:
  bool is_used() const { return is_used_; }

  // From one GPU to one of another node: empty where no path leads there over the links of `mask`.
  // Nothing where there are several shortest ones, whose shares a search has to tell.
  std::optional<std::vector<LinkShare>> only_path(const Topology& graph, DeviceId from, DeviceId to,
                                                  LinkMask mask);

 private:
  struct Range {
    std::int32_t begin = -1, end = -1;  // -1: not looked for yet
  };
  // The way between a GPU and a switch of the fabric, inside the GPU's node.
  struct Exit {
    VertexId at;
    bool is_only;  // no other is as short
    Range links;
  };
  struct Middle {
    bool is_there, is_only;
    Range links;
  };
  // Ways out of nodes, or into them.
  struct Side {
    std::vector<Range> of_gpu;  // into `exits`, by device
    std::vector<Exit> exits;
  };
  struct Step {
    VertexId vertex;
    std::int32_t before;  // into steps_; -1: the GPU itself
    LinkId link;
    std::int32_t depth;
    bool is_only;
  };
  struct Masked {
    LinkMask mask = 0;
    Side out, in;
    std::unordered_map<std::uint64_t, Middle> middles;  // by both vertices
  };

  Masked& of_mask(LinkMask mask);
  Range exits(const Topology& graph, Side& side, DeviceId device, LinkMask mask, bool outward);
  void search_node(const Topology& graph, VertexId gpu, LinkMask mask, bool outward);
  const Middle& middle(const Topology& graph, Masked& masked, VertexId from, VertexId to);
  static std::int32_t length(const Range& range) { return range.end - range.begin; }

  bool is_used_ = false;
  std::mutex mutex_;
  std::vector<Masked> masked_;       // few
  std::vector<LinkId> links_;        // of all parts
  std::vector<Step> steps_;          // of the node that is searched
  std::vector<std::int32_t> place_;  // by vertex: in steps_; -1: not reached
};

}  // namespace stepcast
