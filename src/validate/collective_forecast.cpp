// SPDX-License-Identifier: Apache-2.0
#include "validate/collective_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/cluster.h"
#include "core/json.h"
#include "cost/collective_cost.h"
#include "layout/data_folders.h"

namespace stepcast {
namespace {

// The first GPUs of as many nodes as the group takes.
Result<std::vector<DeviceId>> members_of(const CollectiveCase& one, const Cluster& cluster) {
  const std::int64_t of_node = cluster.spec.gpus_per_node;
  const std::int64_t taken = one.ranks_per_node > 0 ? one.ranks_per_node : of_node;
  std::vector<DeviceId> out;
  for (std::int64_t i = 0; i < one.ranks; ++i) {
    const std::int64_t device = i / taken * of_node + i % taken;
    if (taken > of_node || device >= cluster.gpus()) {
      return failure({ErrorCode::kIllegal,
                      fmt::format("{} ranks, {} on a node, are not in {} GPUs of {} a node",
                                  one.ranks, taken, cluster.gpus(), of_node),
                      "", "collective.ranks", "state cluster.nodes"});
    }
    out.push_back(DeviceId{static_cast<std::int32_t>(device)});
  }
  return out;
}

}  // namespace

Result<Cluster> read_collective_scenario(JsonDocument& document, const DataFolders& folders) {
  ObjectReader object(document.root());
  if (!document.ok() || !object.is_format("stepcast", 1)) return failure(document.errors());
  Cluster out;
  if (const auto value = object.required("cluster")) {
    out = read_cluster(*value, folders.topologies);
  }
  if (const auto value = object.value("software")) out.spec.nccl = read_software(*value);
  object.finish();
  if (!document.ok()) return failure(document.errors());
  return out;
}

Result<std::vector<CollectiveCurve>> curves_without(const std::vector<CollectiveCurve>& curves,
                                                    const std::string& table, ByteCount size,
                                                    const std::vector<std::string>& left_out) {
  std::vector<CollectiveCurve> out;
  if (!table.empty()) {
    const auto of_table = std::ranges::find_if(
        curves, [&](const CollectiveCurve& curve) { return curve.measured().id == table; });
    const bool has_size = of_table != curves.end() && of_table->has_sample(bytes(size));
    if (!has_size) {
      return failure(
          {ErrorCode::kNotFound,
           fmt::format("the curves that price have no sample of {} bytes of '{}'", size, table), "",
           "collective.table",
           "a table of calibrate/profiles/collectives.json; leave it out where none of "
           "them holds this time"});
    }
  }
  for (const CollectiveCurve& curve : curves) {
    const std::string& id = curve.measured().id;
    if (std::ranges::find(left_out, id) != left_out.end()) continue;
    if (table.empty() || id != table) {
      out.push_back(curve);
    } else if (auto rest = curve.without(bytes(size))) {
      out.push_back(std::move(*rest));
    }
  }
  return out;
}

Result<CollectiveForecast> forecast_collective(const CollectiveCase& one, const Cluster& cluster,
                                               std::vector<CollectiveCurve> curves) {
  const auto members = members_of(one, cluster);
  if (!members) return failure(members.error());
  const CollectiveCosts costs(cluster, "", {}, std::move(curves));
  const CollectivePrice price = costs.price(one.kind, one.bytes, DataType::kFp32, *members);
  return CollectiveForecast{price.time(), name_of(price.algorithm), name_of(price.protocol),
                            costs.curve_name(price)};
}

}  // namespace stepcast
