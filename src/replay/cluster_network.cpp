// SPDX-License-Identifier: Apache-2.0
#include "replay/cluster_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "cost/profile.h"
#include "layout/data_folders.h"
#include "predict/choose_profile.h"

namespace stepcast {
namespace {

class ClusterNetwork : public GraphNetwork {
 public:
  ClusterNetwork(const Cluster& cluster, const DataFolders& folders, const Profile& profile)
      : cluster_(cluster), costs_(cluster, folders.profiles, profile.mpi, profile.nccl) {}

  const Errors& errors() const { return costs_.errors(); }

  std::int64_t ranks() const override { return cluster_.gpus(); }
  std::string name() const override { return cluster_.spec.name; }

  void add_resources(sim::Workload& workload) override {
    for (const Link& link : cluster_.topology.links()) {
      links_.push_back(workload.add_resource(link.capacity.value()));
    }
  }

  GraphTransfer collective(CollectiveKind kind, double bytes,
                           std::span<const std::int32_t> ranks) override {
    const std::vector<DeviceId> devices = devices_of(ranks);
    const CollectivePrice price = costs_.price(kind, count(bytes), DataType::kBf16, devices);
    GraphTransfer out = transfer_of(price);
    if (out.work > 0) add_uses(out, loads(price, kind, devices));
    return out;
  }

  GraphTransfer message(double bytes, std::int32_t from, std::int32_t to) override {
    const DeviceId source(from), target(to);
    GraphTransfer out = transfer_of(costs_.price_send(count(bytes), source, target));
    if (out.work <= 0) return out;
    const auto [known, fresh] = sends_.try_emplace({from, to});
    if (fresh) known->second = costs_.loads_of_send(source, target);
    add_uses(out, known->second);
    return out;
  }

  Seconds compute(double flops, double bytes) const override {
    const Accelerator& device = cluster_.spec.accelerator;
    // Older devices have no bf16.
    auto peak = device.peak(DataType::kBf16);
    if (!peak) peak = device.peak(DataType::kFp16);
    if (!peak) peak = device.peak(DataType::kFp32);
    Seconds time(0);
    if (peak) time = Seconds(flops / peak->value());
    if (device.memory_bandwidth.value() > 0) {
      time = std::max(time, Seconds(bytes / device.memory_bandwidth.value()));
    }
    return time;
  }

 private:
  static ByteCount count(double bytes) { return static_cast<ByteCount>(std::llround(bytes)); }

  static std::vector<DeviceId> devices_of(std::span<const std::int32_t> ranks) {
    std::vector<DeviceId> out;
    out.reserve(ranks.size());
    for (const std::int32_t rank : ranks) out.emplace_back(rank);
    return out;
  }

  static GraphTransfer transfer_of(const CollectivePrice& price) {
    GraphTransfer out;
    out.latency = price.latency;
    out.work = price.work.value();
    out.rate_bound = price.rate_bound.value();
    out.share = static_cast<double>(price.channels);
    return out;
  }

  // A group loads links alike for every size that goes by one algorithm.
  const std::vector<LinkLoad>& loads(const CollectivePrice& price, CollectiveKind kind,
                                     const std::vector<DeviceId>& devices) {
    const auto [known, fresh] = loads_.try_emplace({kind, price.algorithm, devices});
    if (fresh) known->second = costs_.loads(price, kind, devices);
    return known->second;
  }

  // Alone it is as fast as its own links let it be, those that NCCL does not know among them.
  void add_uses(GraphTransfer& out, const std::vector<LinkLoad>& loads) const {
    out.rate_bound =
        rate_at_once(cluster_.topology, BytesPerSecond(out.rate_bound), {&loads, 1}).value();
    out.uses.reserve(loads.size());
    for (const LinkLoad& load : loads) out.uses.push_back({links_[load.link.index()], load.weight});
  }

  const Cluster& cluster_;
  CollectiveCosts costs_;
  std::vector<sim::ResourceId> links_;
  std::map<std::tuple<CollectiveKind, Algorithm, std::vector<DeviceId>>, std::vector<LinkLoad>>
      loads_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<LinkLoad>> sends_;
};

}  // namespace

Result<std::unique_ptr<GraphNetwork>> cluster_network(const Cluster& cluster,
                                                      const DataFolders& folders) {
  const auto profile = device_profile(cluster.spec.accelerator, folders);
  if (!profile) return failure(profile.error());
  auto network = std::make_unique<ClusterNetwork>(cluster, folders, *profile);
  if (!network->errors().empty()) return failure(network->errors());
  return network;
}

}  // namespace stepcast
