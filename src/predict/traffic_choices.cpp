// SPDX-License-Identifier: Apache-2.0
#include "predict/traffic_choices.h"

#include "cost/nccl_graph.h"
#include "layout/scenario.h"
#include "predict/pricing.h"
#include "predict/traffic.h"
#include "program/program.h"

namespace stepcast {
namespace {

std::vector<std::int64_t> choices_of(const NcclGraph& graph) {
  std::vector<std::int64_t> out = {graph.ring.count, graph.nvls.count, graph.run_channels};
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    out.push_back(static_cast<std::int64_t>(nccl_asymptote(graph, kind).algorithm));
  }
  return out;
}

TrafficChoice choice_of(const CollectivePrice& price) {
  TrafficChoice out;
  out.algorithm = price.algorithm;
  out.protocol = price.protocol;
  out.channels = price.channels;
  return out;
}

}  // namespace

std::vector<TrafficChoice> traffic_choices(const Scenario& scenario, const Pricing& pricing) {
  const RankGrid grid(scenario.layout);
  const Traffic traffic = place_traffic(scenario, lower(scenario), grid, pricing.collectives);
  std::vector<TrafficChoice> out;
  for (const GroupTraffic& groups : traffic.groups) {
    for (const GroupOrbit& orbit : groups.orbits) {
      const auto shape = pricing.collectives.shape(devices_of(orbit.members));
      for (std::size_t m = 0; m < groups.messages.size(); ++m) {
        TrafficChoice& choice = out.emplace_back(choice_of(orbit.prices[m].price));
        choice.group = groups.group;
        choice.message = groups.messages[m];
        choice.ranks = static_cast<std::int64_t>(orbit.members.size());
        if (shape) choice.communicator = choices_of(nccl_graph(scenario.cluster.spec, *shape));
      }
    }
  }
  for (const PairTraffic& pairs : traffic.pairs) {
    for (const PairOrbit& pair : pairs.orbits) {
      TrafficChoice& choice = out.emplace_back(choice_of(pair.price));
      choice.message.kind = CollectiveKind::kSendReceive;
      choice.message.bytes = static_cast<ByteCount>(pair.price.work.value());
    }
  }
  return out;
}

}  // namespace stepcast
