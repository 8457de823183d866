// SPDX-License-Identifier: Apache-2.0
// A cable, a NIC or a switch that is slow or gone, in each cluster that ships: the same fault has
// one price, whether it is named (`fail`) or described (a graph with that capacity), less is never
// faster, and nobody is slowed who does not use it.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cluster/write_cluster.h"
#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/collective_cost.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::source_folders;

std::optional<Cluster> try_cluster(const SortedJson& value) {
  const auto document = JsonDocument::from(SortedJson{{"cluster", value}}, "test.json");
  ObjectReader reader(document->root());
  Cluster out = read_cluster(*reader.required("cluster"), source_folders().topologies);
  if (!document->ok()) return std::nullopt;
  return out;
}

// Two nodes, or one that has no NIC, each an NVLink domain of its own.
SortedJson two_nodes(const ClusterSpec& spec) {
  SortedJson out = {{"base", spec.name}, {"nodes", spec.nics_per_node > 0 ? 2 : 1}};
  if (spec.nvlink_domain_nodes > 1) out["nvlink_domain_nodes"] = 1;
  return out;
}

SortedJson with_fault(SortedJson cluster, const std::string& part, const std::string& left) {
  cluster["fail"] = SortedJson::array({left.empty() ? part : part + "=" + left});
  return cluster;
}

// A cable of the first GPU, and where there is a network a NIC and one leaf of several: a graph
// whose only leaf is slow is a cluster with slower NICs.
std::vector<std::string> parts_of(const Cluster& cluster) {
  const Topology& graph = cluster.topology;
  std::optional<LinkId> cable;
  for (const LinkId id : graph.out_links(graph.gpus().front())) {
    const bool is_better =
        !cable || graph.links()[id.index()].kind < graph.links()[cable->index()].kind;
    if (is_better) cable = id;
  }
  const Link& link = graph.links()[cable->index()];
  std::vector<std::string> out = {graph.name(link.from) + "-" + graph.name(link.to)};
  if (cluster.spec.nics_per_node > 0) out.emplace_back("node0/nic0");
  const auto is_leaf = [](const Vertex& vertex) { return vertex.kind == VertexKind::kLeaf; };
  if (std::ranges::count_if(graph.vertices(), is_leaf) > 1) out.emplace_back("leaf0");
  return out;
}

// The cables of a part, by the names of their ends.
bool is_of_part(const std::string& part, const std::string& from, const std::string& to) {
  if (part == from + "-" + to || part == to + "-" + from) return true;
  if (part.find("nic") != std::string::npos && part.find('-') == std::string::npos) {
    return (from == part && to.starts_with("leaf")) || (to == part && from.starts_with("leaf"));
  }
  return from == part || to == part;
}

// The graph in which the cables of the part are as wide as the share says.
SortedJson described(const Cluster& cluster, const std::string& part, double share) {
  SortedJson graph = graph_file(cluster);
  for (SortedJson& link : graph["links"]) {
    const bool both = link.contains("between");
    const std::string from = (both ? link["between"][0] : link["from"]).get<std::string>();
    const std::string to = (both ? link["between"][1] : link["to"]).get<std::string>();
    if (!is_of_part(part, from, to)) continue;
    const auto document = JsonDocument::from(link, "");
    ObjectReader reader(document->root());
    link["capacity"] = fmt::format("{} B/s", reader.rate("capacity")->value() * share);
  }
  return graph;
}

struct SomeGroup {
  const char* name;
  std::vector<DeviceId> members;
};

std::vector<SomeGroup> groups_of(const Cluster& cluster) {
  const std::int64_t local = cluster.spec.gpus_per_node, all = cluster.gpus();
  const auto every = [&](std::int64_t first, std::int64_t end, std::int64_t stride) {
    std::vector<DeviceId> out;
    for (std::int64_t d = first; d < end; d += stride) {
      out.push_back(DeviceId(static_cast<std::int32_t>(d)));
    }
    return out;
  };
  std::vector<SomeGroup> out = {{"all", every(0, all, 1)}, {"node 0", every(0, local, 1)}};
  if (all > local) {
    out.push_back({"node 1", every(local, all, 1)});
    out.push_back({"first of each node", every(0, all, local)});
    out.push_back({"last of each node", every(local - 1, all, local)});
  }
  return out;
}

constexpr ByteCount kQuarterGibibyte = ByteCount{1} << 28;

class PricedGroups {
 public:
  explicit PricedGroups(Cluster cluster)
      : cluster_(std::move(cluster)), costs_(cluster_, source_folders().profiles) {}
  Seconds time(const SomeGroup& group) const {
    return costs_
        .price(CollectiveKind::kAllReduce, kQuarterGibibyte, DataType::kBf16, group.members)
        .time();
  }
  // Whether its traffic passes a cable of the part.
  bool uses(const SomeGroup& group, const std::string& part) const {
    const CollectivePrice price =
        costs_.price(CollectiveKind::kAllReduce, kQuarterGibibyte, DataType::kBf16, group.members);
    for (const LinkLoad& load : costs_.loads(price, CollectiveKind::kAllReduce, group.members)) {
      const Link& link = cluster_.topology.links()[load.link.index()];
      if (is_of_part(part, cluster_.topology.name(link.from), cluster_.topology.name(link.to))) {
        return true;
      }
    }
    return false;
  }
  const Cluster& cluster() const { return cluster_; }

 private:
  Cluster cluster_;
  CollectiveCosts costs_;
};

std::vector<ClusterSpec> shipped_specs() {
  const auto specs = list_clusters(source_folders().topologies);
  EXPECT_TRUE(specs.has_value());
  return *specs;
}

void check_part(const PricedGroups& whole, const SortedJson& cluster, const std::string& part) {
  std::vector<Seconds> before;
  for (const SomeGroup& group : groups_of(whole.cluster())) before.push_back(whole.time(group));
  for (const int percent : {90, 50, 10}) {
    const auto named = try_cluster(with_fault(cluster, part, fmt::format("{}%", percent)));
    const auto graph = try_cluster(described(whole.cluster(), part, percent / 100.0));
    ASSERT_TRUE(named && graph) << part;
    const PricedGroups slow(*named), other(*graph);
    const std::vector<SomeGroup> groups = groups_of(whole.cluster());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::string where = fmt::format("{}, {} at {} %, {}", whole.cluster().spec.name, part,
                                            percent, groups[g].name);
      const Seconds time = slow.time(groups[g]);
      EXPECT_NEAR(time / other.time(groups[g]), 1, 0.01) << where;
      EXPECT_GE(time / before[g], 1 - 1e-9) << where;
      if (!whole.uses(groups[g], part)) {
        EXPECT_NEAR(time / whole.time(groups[g]), 1, 1e-9) << where;
      }
      before[g] = time;
    }
  }
}

TEST(SlowParts, HaveOnePriceAndSlowTheirUsersAlone) {
  for (const ClusterSpec& spec : each_of(shipped_specs())) {
    const SortedJson cluster = two_nodes(spec);
    const auto read = try_cluster(cluster);
    ASSERT_TRUE(read) << spec.name;
    const PricedGroups whole(*read);
    for (const std::string& part : each_of(parts_of(*read))) check_part(whole, cluster, part);
  }
}

// A part that is gone cuts its users off, or they go another way, which is no faster.
TEST(SlowParts, ThatAreGoneAreRefusedOrWentRound) {
  AtLeast forecast(40);
  for (const ClusterSpec& spec : each_of(shipped_specs())) {
    const SortedJson cluster = two_nodes(spec);
    const PricedGroups whole(*try_cluster(cluster));
    for (const std::string& part : each_of(parts_of(whole.cluster()))) {
      const auto left = try_cluster(with_fault(cluster, part, ""));
      if (!left) continue;
      const PricedGroups rest(*left);
      for (const SomeGroup& group : groups_of(whole.cluster())) {
        EXPECT_GE(rest.time(group) / whole.time(group), 1 - 1e-9)
            << spec.name << ", without " << part << ", " << group.name;
        ++forecast;
      }
    }
  }
}

// A whole step: tensor parallelism inside the nodes, data parallelism between them.
TEST(SlowParts, HaveOnePriceInAStep) {
  for (const ClusterSpec& spec : each_of(shipped_specs())) {
    const SortedJson cluster = two_nodes(spec);
    const Cluster whole = *try_cluster(cluster);
    const auto step = [&](const SortedJson& value) {
      SortedJson scenario = {{"stepcast", 1},
                             {"model", "llama-3.2-1b"},
                             {"cluster", value},
                             {"training",
                              {{"framework", "megatron"},
                               {"precision", "fp16"},
                               {"global_batch", 16},
                               {"sequence_length", 2048}}},
                             {"layout", {{"tp", whole.spec.gpus_per_node}, {"zero", 1}}}};
      const auto forecast = predict(testing::scenario_from(json_text(scenario)), source_folders());
      EXPECT_TRUE(forecast) << spec.name << ": " << to_string(forecast.error());
      return forecast ? forecast->step_time : Seconds(0);
    };
    const Seconds sound = step(cluster);
    for (const std::string& part : each_of(parts_of(whole))) {
      const Seconds slow = step(with_fault(cluster, part, "10%"));
      EXPECT_NEAR(slow / step(described(whole, part, 0.1)), 1, 0.01) << spec.name << ", " << part;
      EXPECT_GE(slow / sound, 1 - 1e-9) << spec.name << ", " << part;
    }
  }
}

}  // namespace
}  // namespace stepcast
