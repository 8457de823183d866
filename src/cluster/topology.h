// SPDX-License-Identifier: Apache-2.0
// A cluster as a graph: GPUs, NVSwitches, PCIe switches, hosts, NICs, leaf and spine switches,
// joined by directed links with a capacity in bytes/s and a latency. A fat tree's spine layer of
// one pod is one vertex per plane: ECMP in equal fractions makes its switches one trunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/id.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

enum class VertexKind { kGpu, kNvSwitch, kPcieSwitch, kHost, kNic, kLeaf, kSpine, kCore, kWan };
enum class LinkKind { kNvlink, kPcie, kHostBus, kNic, kFabric };
const char* name_of(VertexKind kind);
const char* name_of(LinkKind kind);

struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  std::int32_t node = -1;  // -1 for switches of the fabric and of an NVLink domain of several nodes
  std::int32_t index = 0;  // among its kind in the node (or in the fabric, in its plane)
  std::int32_t plane = -1;  // of a switch of the fabric; -1: there is one
};

// Which GPU stands at a vertex, where not all are alike.
struct GpuKind {
  std::int32_t model = 0;  // into Cluster::accelerator(): 0 is the cluster's own
  double speed = 1;        // the share that a slow one has left
  auto operator<=>(const GpuKind&) const = default;
};

struct Link {
  VertexId from;
  VertexId to;
  LinkKind kind = LinkKind::kNvlink;
  BytesPerSecond capacity;  // one direction, nominal
  Seconds latency;
};

// A share of a path's traffic on one link: 1 for a single path, 1/k for k equal paths.
struct LinkShare {
  LinkId link;
  double fraction;
};

// Flows of which each takes one of several equal ways, by a hash of the seed, its ends and its NIC.
struct HashedFlows {
  std::int64_t seed = 0;
  std::int64_t count = 0;  // from one GPU to another; 0: all ways share evenly
};

// The links of one vertex: a list threaded through an array, so that adding a link allocates
// nothing of its own.
class LinkRange {
 public:
  class Iterator {
   public:
    using value_type = LinkId;
    using difference_type = std::ptrdiff_t;
    using reference = LinkId;
    using pointer = const LinkId*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    Iterator(LinkId at, const std::vector<LinkId>* next) : at_(at), next_(next) {}
    LinkId operator*() const { return at_; }
    Iterator& operator++() {
      at_ = (*next_)[at_.index()];
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    LinkId at_;
    const std::vector<LinkId>* next_ = nullptr;
  };

  LinkRange(LinkId first, const std::vector<LinkId>& next) : first_(first), next_(&next) {}
  Iterator begin() const { return {first_, next_}; }
  Iterator end() const { return {LinkId(), next_}; }
  bool empty() const { return !first_.valid(); }

 private:
  LinkId first_;
  const std::vector<LinkId>* next_;
};

class RouteTable;

class Topology {
 public:
  Topology();
  // Only an irregular graph gives names; the others follow from kind, node and index.
  VertexId add_vertex(Vertex vertex, std::string name = "");
  LinkId add_link(const Link& link);  // one direction
  void add_cable(const Link& link);   // both directions
  void reserve(std::size_t vertices, std::size_t links);
  void set_kind(VertexId gpu, const GpuKind& kind);
  void set_device_order(std::vector<VertexId> gpus);  // all of them, once each
  void set_flows(const HashedFlows& flows) { flows_ = flows; }
  // This graph, of whose GPUs only these are devices, numbered anew. Links keep their numbers.
  Topology with_devices(const std::vector<DeviceId>& devices) const;

  const std::vector<Vertex>& vertices() const { return vertices_; }
  const std::vector<Link>& links() const { return links_; }
  const std::vector<VertexId>& gpus() const { return gpus_; }  // by DeviceId
  LinkRange out_links(VertexId vertex) const { return {first_out_[vertex.index()], next_out_}; }
  LinkRange in_links(VertexId vertex) const { return {first_in_[vertex.index()], next_in_}; }

  bool is_uneven() const { return !kinds_.empty(); }  // a GPU is not as the others are
  GpuKind kind(VertexId gpu) const;
  GpuKind kind(DeviceId device) const { return kind(gpus_[device.index()]); }

  const HashedFlows& flows() const { return flows_; }
  // Ways depend on who sends to whom: parts that lie alike do not carry alike.
  bool is_hashed() const { return flows_.count > 0; }

  // A link leads from one node into another, past no switch: nodes may then pass traffic on.
  bool joins_nodes() const { return joins_nodes_; }

  std::int32_t out_degree(VertexId vertex) const { return out_degree_[vertex.index()]; }

  std::string name(VertexId vertex) const;        // "node3/gpu5", "leaf12"
  std::string given_name(VertexId vertex) const;  // empty where it follows
  std::string name(LinkId link) const;            // "node3/gpu5 -> node3/nvswitch0"

  // The path between two GPUs: fewest hops, equal-cost paths in equal fractions, never through
  // another GPU or another node. NVLink before PCIe before the network. Where no switch leads from
  // the sender's NICs to the receiver's, NVLink hands the traffic to a GPU of the sender's node
  // whose NICs do (NCCL's PXN); a host bridge only where a NIC cannot be reached without it. Empty
  // when there is no path, and from a GPU to itself. Hashed flows take one of the links that lead
  // from a switch to others, with all that they carry.
  std::vector<LinkShare> route(DeviceId from, DeviceId to) const;
  Seconds latency(DeviceId from, DeviceId to) const;  // sum along it, the mean over equal paths

  // Unreachable pairs, cycles among tiers that should be a tree, zero capacities, GPUs without
  // links: everything wrong with the graph as input errors (`topology check`).
  Errors check() const;

 private:
  // `search`: all of it, without the parts that other routes share.
  std::vector<LinkShare> route(DeviceId from, DeviceId to, bool search) const;
  std::vector<LinkShare> even_route(DeviceId from, DeviceId to, bool search) const;
  std::vector<LinkShare> relayed(VertexId from, VertexId to) const;

  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<VertexId> gpus_;
  std::vector<LinkId> first_out_;  // by vertex
  std::vector<LinkId> first_in_;
  std::vector<std::int32_t> out_degree_;
  std::vector<LinkId> next_out_;  // by link
  std::vector<LinkId> next_in_;
  std::unordered_map<std::int32_t, std::string> names_;
  std::unordered_map<std::int32_t, GpuKind> kinds_;  // by vertex; those of no entry are ordinary
  bool joins_nodes_ = false;
  HashedFlows flows_;
  std::shared_ptr<RouteTable> routes_;  // of the graph as it is, for all copies of it
};

}  // namespace stepcast
