// SPDX-License-Identifier: Apache-2.0
// Flows on random networks, replayed here and by SimGrid (https://simgrid.org), whose network model
// is fair sharing too. Both must end every flow at the same time.
#include <gtest/gtest.h>

#include <simgrid/s4u.hpp>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "../scene.h"

namespace stepcast::sim {
namespace {

namespace s4u = simgrid::s4u;

struct Flow {
  double begin_s;
  double bytes;
  double most_rate;        // bytes per second
  std::vector<int> links;  // of its network, at least one
};

struct Network {
  std::vector<double> capacities;  // bytes per second
  std::vector<Flow> flows;
};

// Flows begin at a few instants, so that rates change while others run. All have one latency, by
// which SimGrid weighs flows.
constexpr double kLatency = 1e-3;

Network random_network(std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Network network;
  const int links = 2 + static_cast<int>(random() % 7);
  for (int l = 0; l < links; ++l) network.capacities.push_back(uniform(1e9, 1e10));
  const int flows = 2 + static_cast<int>(random() % 14);
  for (int f = 0; f < flows; ++f) {
    Flow flow{std::floor(uniform(0, 4)),
              uniform(1e9, 2e10),
              random() % 3 == 0 ? uniform(1e8, 1e9) : 1e12,
              {}};
    for (int l = 0; l < links; ++l) {
      if (random() % 3 == 0) flow.links.push_back(l);
    }
    if (flow.links.empty())
      flow.links.push_back(static_cast<int>(random() % network.capacities.size()));
    network.flows.push_back(flow);
  }
  return network;
}

std::vector<double> ends_here(const Network& network) {
  Scene scene;
  std::vector<ResourceId> links;
  for (const double capacity : network.capacities) links.push_back(scene.resource(capacity));
  std::vector<TaskId> tasks;
  for (const Flow& flow : network.flows) {
    const StreamId stream = scene.stream();
    scene.delay(stream, flow.begin_s);
    Scene::Flow spec{
        .work = flow.bytes, .bound = flow.most_rate, .uses = {}, .latency_s = kLatency};
    for (const int link : flow.links)
      spec.uses.push_back({links[static_cast<std::size_t>(link)], 1});
    tasks.push_back(scene.flow(stream, spec));
  }
  scene.run();
  std::vector<double> ends;
  for (const TaskId task : tasks) ends.push_back(scene.end(task));
  return ends;
}

// All networks stand side by side in one platform, because a process has one engine of SimGrid.
std::vector<std::vector<double>> ends_of_simgrid(const std::vector<Network>& networks) {
  std::vector<std::string> words = {"simgrid_test",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:0",  // no window of TCP holds a flow
                                    "--cfg=maxmin/precision:1e-9",
                                    "--log=root.thres:warning"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  s4u::Engine engine(&count, arguments.data());
  s4u::NetZone* all = s4u::create_full_zone("all");
  std::vector<std::vector<double>> ends(networks.size());
  for (std::size_t n = 0; n < networks.size(); ++n) {
    const Network& network = networks[n];
    const std::string zone_name = "zone" + std::to_string(n);
    s4u::NetZone* zone = s4u::create_full_zone(zone_name);
    zone->set_parent(all);
    std::vector<const s4u::Link*> links;
    for (std::size_t l = 0; l < network.capacities.size(); ++l) {
      links.push_back(
          zone->create_link(zone_name + "_link" + std::to_string(l), network.capacities[l])
              ->set_latency(0)
              ->seal());
    }
    ends[n].resize(network.flows.size());
    for (std::size_t f = 0; f < network.flows.size(); ++f) {
      const std::string flow_name = zone_name + "_flow" + std::to_string(f);
      s4u::Host* from = zone->create_host(flow_name + "_from", 1e9)->seal();
      s4u::Host* to = zone->create_host(flow_name + "_to", 1e9)->seal();
      // A link of its own gives the flow its latency and its highest rate.
      const Flow& flow = network.flows[f];
      const s4u::Link* own =
          zone->create_link(flow_name + "_own", flow.most_rate)->set_latency(kLatency)->seal();
      std::vector<s4u::LinkInRoute> route = {s4u::LinkInRoute(own)};
      for (const int link : flow.links) {
        route.emplace_back(links[static_cast<std::size_t>(link)]);
      }
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, true);
      double* end = &ends[n][f];
      s4u::Actor::create(flow_name, from, [from, to, flow, end] {
        s4u::this_actor::sleep_until(flow.begin_s);
        s4u::Comm::sendto_init(from, to)
            ->set_payload_size(static_cast<std::uint64_t>(std::llround(flow.bytes)))
            ->wait();
        *end = s4u::Engine::get_clock();
      });
    }
    zone->seal();
  }
  all->seal();
  engine.run();
  return ends;
}

TEST(SimGrid, EndsEveryFlowOfAThousandNetworksAtTheSameTime) {
  std::mt19937_64 random(20261129);
  std::vector<Network> networks;
  for (int n = 0; n < 1000; ++n) {
    networks.push_back(random_network(random));
    for (Flow& flow : networks.back().flows) flow.bytes = std::round(flow.bytes);
  }
  const std::vector<std::vector<double>> theirs = ends_of_simgrid(networks);
  double worst = 0;
  for (std::size_t n = 0; n < networks.size(); ++n) {
    const std::vector<double> ours = ends_here(networks[n]);
    for (std::size_t f = 0; f < ours.size(); ++f) {
      worst = std::max(worst, std::abs(ours[f] - theirs[n][f]) / theirs[n][f]);
      ASSERT_NEAR(ours[f], theirs[n][f], 1e-9 * theirs[n][f]) << "network " << n << ", flow " << f;
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace stepcast::sim
