// SPDX-License-Identifier: Apache-2.0
#include "replay/cluster_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/json.h"
#include "cost/profile.h"
#include "layout/data_folders.h"
#include "predict/choose_profile.h"

namespace stepcast {
namespace {

class ClusterNetwork : public GraphNetwork {
 public:
  ClusterNetwork(const Cluster& cluster, const DataFolders& folders, const Profile& profile,
                 std::vector<std::int32_t> gpus)
      : cluster_(cluster),
        costs_(cluster, folders.profiles, profile.mpi, profile.nccl),
        gpus_(std::move(gpus)) {}

  const Errors& errors() const { return costs_.errors(); }

  std::int64_t ranks() const override {
    return gpus_.empty() ? cluster_.gpus() : static_cast<std::int64_t>(gpus_.size());
  }
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
    const DeviceId source = device_of(from), target = device_of(to);
    // A message without bytes goes all the way, too.
    GraphTransfer out = transfer_of(costs_.price_send(count(std::max(bytes, 1.0)), source, target));
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

  DeviceId device_of(std::int32_t rank) const {
    return DeviceId(gpus_.empty() ? rank : gpus_[static_cast<std::size_t>(rank)]);
  }

  std::vector<DeviceId> devices_of(std::span<const std::int32_t> ranks) const {
    std::vector<DeviceId> out;
    out.reserve(ranks.size());
    for (const std::int32_t rank : ranks) out.push_back(device_of(rank));
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
  std::vector<std::int32_t> gpus_;  // by rank; empty: rank i on GPU i
  std::vector<sim::ResourceId> links_;
  std::map<std::tuple<CollectiveKind, Algorithm, std::vector<DeviceId>>, std::vector<LinkLoad>>
      loads_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<LinkLoad>> sends_;
};

}  // namespace

Result<std::unique_ptr<GraphNetwork>> cluster_network(const Cluster& cluster,
                                                      const DataFolders& folders,
                                                      ClusterPlaces places) {
  const auto profile = named_profile(places.profile, cluster.spec.accelerator, folders);
  if (!profile) return failure(profile.error());
  auto network =
      std::make_unique<ClusterNetwork>(cluster, folders, *profile, std::move(places.gpus));
  if (!network->errors().empty()) return failure(network->errors());
  return network;
}

Result<std::vector<std::int32_t>> read_rank_map(const std::string& file, std::int64_t ranks,
                                                std::int64_t gpus) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  const JsonValue root = (*document)->root();
  std::vector<std::int32_t> out;
  std::set<std::int64_t> taken;
  if (!root.is_array()) root.fail(ErrorCode::kWrongType, "is no list of GPUs", "[0, 8, 1, 9]");
  if (root.is_array()) {
    for (const JsonValue& item : root.items()) {
      const auto gpu = item.integer(0, gpus - 1);
      if (!gpu) continue;
      if (!taken.insert(*gpu).second) {
        item.fail(ErrorCode::kIllegal, fmt::format("GPU {} has a rank already", *gpu),
                  "each GPU once");
      }
      out.push_back(static_cast<std::int32_t>(*gpu));
    }
  }
  if ((*document)->ok() && static_cast<std::int64_t>(out.size()) < ranks) {
    root.fail(ErrorCode::kIllegal,
              fmt::format("names {} GPUs, and there are {} ranks", out.size(), ranks),
              "a GPU for each rank");
  }
  if (!(*document)->ok()) return failure((*document)->errors());
  return out;
}

}  // namespace stepcast
