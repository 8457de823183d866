// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_group.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/nic_cable.h"

namespace stepcast {
namespace {

void add_once(std::vector<VertexId>& list, std::size_t from, VertexId vertex) {
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(from);
  if (std::find(begin, list.end(), vertex) == list.end()) list.push_back(vertex);
}

constexpr double kSlow = 1 - 1e-6;  // sums of cables are not exact

double left_of(BytesPerSecond is, BytesPerSecond stated) {
  const double left = stated.value() > 0 ? is / stated : 1;
  return left > 0 && left < kSlow ? left : 1;
}

}  // namespace

DeviceLinks::DeviceLinks(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  std::unordered_map<std::int32_t, std::vector<VertexId>> of_node;
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    const VertexId vertex(i);
    if (is_nic_with_cable(topology, vertex)) of_node[topology.vertices()[i].node].push_back(vertex);
  }
  first_.reserve(topology.gpus().size() + 1);
  for (const VertexId gpu : topology.gpus()) {
    const std::size_t first = nics_.size();
    first_.push_back(static_cast<std::int32_t>(first));
    for (const LinkId out : topology.out_links(gpu)) {
      const VertexId neighbour = topology.links()[out.index()].to;
      if (is_nic_with_cable(topology, neighbour)) add_once(nics_, first, neighbour);
      if (topology.vertices()[neighbour.index()].kind != VertexKind::kPcieSwitch) continue;
      for (const LinkId next : topology.out_links(neighbour)) {
        const VertexId beyond = topology.links()[next.index()].to;
        if (is_nic_with_cable(topology, beyond)) add_once(nics_, first, beyond);
      }
    }
    if (nics_.size() == first) {
      const auto all = of_node.find(topology.vertices()[gpu.index()].node);
      if (all != of_node.end()) nics_.insert(nics_.end(), all->second.begin(), all->second.end());
    }
  }
  first_.push_back(static_cast<std::int32_t>(nics_.size()));
  find_slow(cluster);
}

void DeviceLinks::find_slow(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  const ClusterSpec& spec = cluster.spec;
  if (spec.failed.empty() && !spec.is_graph) return;  // all parts are as the cluster states
  for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
    BytesPerSecond nvlink, pcie;
    for (const LinkId out : topology.out_links(topology.gpus()[i])) {
      const Link& link = topology.links()[out.index()];
      if (link.kind == LinkKind::kNvlink) nvlink += link.capacity;
      if (link.kind == LinkKind::kPcie) pcie += link.capacity;
    }
    const double pcie_left = left_of(pcie, spec.pcie_bandwidth);
    const Left left{
        spec.scale_up == ScaleUp::kPcie ? pcie_left : left_of(nvlink, spec.scale_up_bandwidth),
        pcie_left};
    if (left.scale_up < 1 || left.pcie < 1) slow_gpus_[DeviceId(i)] = left;
  }
  // Ports of a NIC share its traffic evenly, so that the slowest sets the pace of all.
  std::map<VertexId, std::pair<BytesPerSecond, int>> ports;  // by NIC: the slowest, and how many
  for (const Link& link : topology.links()) {
    if (link.kind != LinkKind::kNic) continue;
    if (topology.vertices()[link.from.index()].kind != VertexKind::kNic) continue;
    const auto [known, fresh] = ports.try_emplace(link.from, link.capacity, 0);
    auto& [slowest, count] = known->second;
    slowest = std::min(slowest, link.capacity);
    ++count;
  }
  for (const auto& [nic, of_nic] : ports) {
    const double left = left_of(of_nic.first * of_nic.second, spec.nic_bandwidth);
    if (left < 1) slow_nics_[nic] = left;
  }
}

DeviceLinks::Left DeviceLinks::left(DeviceId device) const {
  const auto found = slow_gpus_.find(device);
  return found == slow_gpus_.end() ? Left{} : found->second;
}

double DeviceLinks::nic_left(VertexId nic) const {
  const auto found = slow_nics_.find(nic);
  return found == slow_nics_.end() ? 1 : found->second;
}

std::span<const VertexId> DeviceLinks::nics(DeviceId device) const {
  const std::size_t begin = static_cast<std::size_t>(first_[device.index()]);
  const std::size_t end = static_cast<std::size_t>(first_[device.index() + 1]);
  return {nics_.data() + begin, end - begin};
}

std::int64_t switch_links(const Cluster& cluster, std::span<const DeviceId> members) {
  std::vector<std::int64_t> nodes;
  nodes.reserve(members.size());
  for (const DeviceId member : members) nodes.push_back(cluster.node_of(member));
  return links_between_switches(cluster.spec, nodes);
}

void find_what_is_left(const DeviceLinks& links, std::span<const DeviceId> members,
                       GroupShape& shape) {
  if (!links.any_slow()) return;
  for (const DeviceId member : members) {
    const DeviceLinks::Left left = links.left(member);
    shape.scale_up_left = std::min(shape.scale_up_left, left.scale_up);
    shape.pcie_left = std::min(shape.pcie_left, left.pcie);
    if (shape.domains == 1) continue;
    for (const VertexId nic : links.nics(member)) {
      shape.nic_left = std::min(shape.nic_left, links.nic_left(nic));
    }
  }
}

std::int64_t nics_of_gpu(const ClusterSpec& cluster) {
  const std::int64_t gpus = std::max<std::int64_t>(1, cluster.gpus_per_node);
  return std::max<std::int64_t>(1, (cluster.nics_per_node + gpus - 1) / gpus);
}

GroupShape shape_of(const Cluster& cluster, const DeviceLinks& links,
                    std::span<const DeviceId> members) {
  GroupShape shape;
  shape.ranks = static_cast<std::int64_t>(members.size());
  if (members.empty()) return shape;

  std::vector<std::int64_t> domains;
  domains.reserve(members.size());
  for (const DeviceId member : members) domains.push_back(cluster.domain_of(member));
  const auto other = [&](std::int64_t domain) { return domain != domains.front(); };
  if (std::none_of(domains.begin(), domains.end(), other)) {
    shape.largest = shape.smallest = shape.ranks;
    find_what_is_left(links, members, shape);
    return shape;
  }

  std::vector<std::pair<std::int64_t, VertexId>> used;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (const VertexId nic : links.nics(members[i])) used.emplace_back(domains[i], nic);
  }
  if (!std::ranges::is_sorted(used)) std::ranges::sort(used);  // groups mostly ascend
  used.erase(std::unique(used.begin(), used.end()), used.end());
  if (!std::ranges::is_sorted(domains)) std::ranges::sort(domains);

  shape.switch_links = switch_links(cluster, members);
  shape.sites = 0;
  std::int64_t site = -1;
  for (const std::int64_t domain : domains) {
    const std::int64_t node = domain * cluster.spec.nvlink_domain_nodes;
    if (std::exchange(site, node / cluster.spec.nodes_per_site()) != site) ++shape.sites;
  }
  const std::int64_t own_nics = nics_of_gpu(cluster.spec);
  shape.domains = 0;
  shape.largest = 0;
  shape.smallest = shape.nics = std::numeric_limits<std::int64_t>::max();
  auto nic = used.begin();
  for (auto begin = domains.begin(); begin != domains.end();) {
    const auto end = std::upper_bound(begin, domains.end(), *begin);
    const auto mine = [&](const auto& entry) { return entry.first == *begin; };
    const auto nic_end = std::find_if_not(nic, used.end(), mine);
    // A GPU that has lost its NIC drives another one, and not all of its machine.
    const std::int64_t most = (end - begin) * own_nics;
    shape.nics = std::min({shape.nics, std::int64_t{nic_end - nic}, most});
    shape.largest = std::max<std::int64_t>(shape.largest, end - begin);
    shape.smallest = std::min<std::int64_t>(shape.smallest, end - begin);
    ++shape.domains;
    nic = nic_end;
    begin = end;
  }
  find_what_is_left(links, members, shape);
  return shape;
}

std::vector<DomainMembers> by_domain(const Cluster& cluster, std::span<const DeviceId> members) {
  std::vector<DomainMembers> result;
  std::vector<std::int64_t> domains;  // of `result`
  bool ascend = true;
  for (const DeviceId member : members) {
    const std::int64_t domain = cluster.domain_of(member);
    std::size_t place = domains.size();
    if (!domains.empty() && domains.back() == domain) {
      place = domains.size() - 1;
    } else if (!domains.empty() && !(ascend && domains.back() < domain)) {
      ascend = false;
      place = static_cast<std::size_t>(std::ranges::find(domains, domain) - domains.begin());
    }
    if (place == domains.size()) {
      domains.push_back(domain);
      result.emplace_back();
    }
    result[place].push_back(member);
  }
  return result;
}

}  // namespace stepcast
