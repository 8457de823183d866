// SPDX-License-Identifier: Apache-2.0
// Collectives between ranks on processors.
#include "cost/mpi_collectives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/local_cluster.h"
#include "core/each.h"
#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

// Ranks joined to the memory at 5 GB/s, 0.5 us from it.
Cluster ranks(std::int64_t count) {
  MachineFacts machine;
  machine.processor = "made up";
  machine.clock_hz = 2e9;
  machine.vector_bits = 256;
  machine.cores = 2;
  machine.memory = std::int64_t{8} << 30;
  return local_cluster(machine, count);
}

std::vector<DeviceId> devices(std::initializer_list<int> numbers) {
  std::vector<DeviceId> out;
  for (const int number : numbers) out.emplace_back(number);
  return out;
}

// 10 us for nothing, then 1 GB/s up to 1 MB and 2 GB/s beyond.
MpiCurve curve(std::vector<std::int64_t> placement, std::int64_t concurrent = 1) {
  MpiCurve out;
  out.placement = std::move(placement);
  out.concurrent = concurrent;
  out.cpu_share = 0.5;
  out.samples = {{1e3, 11e-6}, {1e6, 1010e-6}, {3e6, 2010e-6}};
  return out;
}

CollectivePrice price(const CollectiveCosts& costs, ByteCount bytes, std::initializer_list<int> of,
                      CollectiveKind kind = CollectiveKind::kAllReduce) {
  return costs.price(kind, bytes, DataType::kFp32, devices(of));
}

TEST(MpiCollectives, GiveTheirSamplesBackAsMeasured) {
  const Cluster cluster = ranks(4);
  const CollectiveCosts costs(cluster, "", {curve({0, 0, 0, 0})});
  for (const MpiCurve::Sample& sample : each_of(curve({}).samples)) {
    const CollectivePrice hit = price(costs, std::llround(sample.bytes), {0, 1, 2, 3});
    EXPECT_NEAR(hit.time().value(), sample.seconds, 1e-15);
    EXPECT_EQ(hit.provenance, Provenance::kMeasured);
    EXPECT_EQ(hit.algorithm, Algorithm::kRing);
    EXPECT_EQ(hit.cpu_share, 0.5);
  }
}

// Half of a core, and half as long again beside a kernel: a third of the core then, half of the
// kernel's part. With two ranks to a core each has half of it, and the transfer two thirds of that.
// Unmeasured, the two are equals.
TEST(MpiCollectives, HaveTheWeightOnACoreThatStretchesThemAsMeasured) {
  const auto weight = [](std::int64_t on, double share, double stretch) {
    MpiCurve measured = curve({0, 0});
    measured.cpu_share = share;
    measured.stretch = stretch;
    const Cluster cluster = ranks(on);
    return price(CollectiveCosts(cluster, "", {measured}), 1000, {0, 1}).core_weight;
  };
  EXPECT_EQ(weight(2, 0.5, 0), 1);
  EXPECT_NEAR(weight(2, 0.5, 1.5), 0.5, 1e-12);
  EXPECT_NEAR(weight(4, 0.5, 1.5), 2, 1e-12);
  EXPECT_EQ(weight(2, 0, 1), 1);
}

// Half way between 1 and 3 MB: the mean of 1010 and 2010 us. Beyond 3 MB 1 us per 2 kB. Below 1 kB
// the line through 11 us at 1 kB and 1010 us at 1 MB meets zero at 10 us.
TEST(MpiCollectives, AreAffineBetweenAndBeyondSamples) {
  const Cluster cluster = ranks(4);
  const CollectiveCosts costs(cluster, "", {curve({0, 0, 0, 0})});
  const CollectivePrice between = price(costs, 2000000, {0, 1, 2, 3});
  EXPECT_NEAR(between.time().value(), 1510e-6, 1e-12);
  EXPECT_EQ(between.provenance, Provenance::kInterpolated);
  const CollectivePrice beyond = price(costs, 5000000, {0, 1, 2, 3});
  EXPECT_NEAR(beyond.time().value(), 3010e-6, 1e-12);
  EXPECT_EQ(beyond.provenance, Provenance::kExtrapolated);
  const CollectivePrice below = price(costs, 500, {0, 1, 2, 3});
  EXPECT_NEAR(below.time().value(), 10.5e-6, 1e-12);
  EXPECT_NEAR(below.latency.value(), 10e-6, 1e-12);
  EXPECT_EQ(below.provenance, Provenance::kExtrapolated);
}

// The first curve's fluid phase ends at 2 GB/s, so a message of 3 MB takes 1500 us of it at the
// most rate of the curve, and 2000 us at its own: 3 MB / (2010 - 10) us.
TEST(MpiCollectives, MoveThePayloadInTheFluidPhase) {
  const Cluster cluster = ranks(4);
  const CollectiveCosts costs(cluster, "", {curve({0, 0, 0, 0})});
  const CollectivePrice large = price(costs, 3000000, {0, 1, 2, 3});
  EXPECT_NEAR(large.latency.value(), 10e-6, 1e-12);
  EXPECT_NEAR(large.rate_bound.value(), 3e6 / 2000e-6, 1);
  EXPECT_EQ(large.work.value(), 3e6);
}

// A token bucket lets 16 kB through at once; the link carries 12.5 MB/s. Alone such a message takes
// its own time, and on a shared link it asks for what the link could carry meanwhile.
TEST(MpiCollectives, WhatBuffersTakeLoadsNoLink) {
  const Cluster cluster = ranks(2);
  MpiCurve shaped = curve({0, 0});
  shaped.samples = {{1e3, 100e-6}, {16e3, 200e-6}, {1e6, 80.1e-3}, {4e6, 320.1e-3}};
  const CollectiveCosts costs(cluster, "", {shaped});
  const double sustained = shaped.sustained().value();
  EXPECT_NEAR(sustained, 12.5e6, 0.01e6);
  const CollectivePrice small = price(costs, 16000, {0, 1});
  EXPECT_NEAR(small.time().value(), 200e-6, 1e-12);
  EXPECT_LE(small.rate_bound.value(), sustained * (1 + 1e-12));
  EXPECT_LT(small.work.value(), 2600);
  const CollectivePrice large = price(costs, 4000000, {0, 1});
  EXPECT_NEAR(large.work.value(), 4e6, 1);
  EXPECT_EQ(price(costs, 40000000, {0, 1}).work.value(), 4e7);
}

TEST(MpiCollectives, NoiseNeverMakesATimeOtherThanTheSample) {
  const Cluster cluster = ranks(2);
  MpiCurve noisy = curve({0, 0});
  noisy.samples = {{4, 9e-6}, {8, 7e-6}, {16, 8e-6}, {1e6, 500e-6}, {2e6, 450e-6}};
  const CollectiveCosts costs(cluster, "", {noisy});
  for (const MpiCurve::Sample& sample : noisy.samples) {
    const CollectivePrice hit = price(costs, std::llround(sample.bytes), {0, 1});
    EXPECT_NEAR(hit.time().value(), sample.seconds, 1e-15);
    EXPECT_GT(hit.rate_bound.value(), 0);
    EXPECT_GE(hit.latency.value(), 0);
  }
}

// Ring of four in memory: 6 messages, each 5 us and 1 us of the way; 3/2 of the payload leaves each
// rank at 5 GB/s.
TEST(MpiCollectives, WithoutACurveTheGraphPrices) {
  const Cluster cluster = ranks(4);
  const CollectiveCosts costs(cluster, "", {curve({0, 0})});
  const CollectivePrice nominal = price(costs, 1000000, {0, 1, 2, 3});
  EXPECT_NEAR(nominal.latency.value(), 6 * 6e-6, 1e-12);
  EXPECT_NEAR((nominal.work / nominal.rate_bound).value(), 1.5e6 / 5e9, 1e-12);
  EXPECT_EQ(nominal.provenance, Provenance::kDataSheet);
  // A chain of four: three hops, then the payload at the rate of a link.
  const CollectivePrice chain = price(costs, 1000000, {0, 1, 2, 3}, CollectiveKind::kBroadcast);
  EXPECT_NEAR(chain.latency.value(), 3 * 6e-6, 1e-12);
  EXPECT_NEAR((chain.work / chain.rate_bound).value(), 1e6 / 5e9, 1e-12);
  const CollectivePrice send = costs.price_send(1000000, DeviceId(0), DeviceId(1));
  EXPECT_NEAR(send.latency.value(), 6e-6, 1e-12);
  EXPECT_NEAR((send.work / send.rate_bound).value(), 1e6 / 5e9, 1e-12);
  EXPECT_EQ(send.curve, Curve::kPointToPoint);
}

// Two groups of two among four ranks run at once, so the curve of two groups serves; a group of
// all four ranks is alone.
TEST(MpiCollectives, TakeTheCurveOfAsManyGroupsAtOnce) {
  const Cluster cluster = ranks(4);
  MpiCurve alone = curve({0, 0}), pair = curve({0, 0}, 2);
  pair.samples = {{1e3, 20e-6}, {1e6, 2000e-6}};
  const CollectiveCosts costs(cluster, "", {alone, pair});
  EXPECT_NEAR(price(costs, 1000000, {0, 1}).time().value(), 2000e-6, 1e-12);
  const Cluster two = ranks(2);
  const CollectiveCosts only(two, "", {pair, alone});
  EXPECT_NEAR(price(only, 1000000, {0, 1}).time().value(), 1010e-6, 1e-12);
}

double busiest(const Cluster& cluster, const std::vector<LinkLoad>& loads) {
  double out = 0;
  for (const LinkLoad& load : loads) {
    out = std::max(out, load.weight / cluster.topology.links()[load.link.index()].capacity.value());
  }
  return out;
}

// A curve that reaches 4 GB/s of payload: of two ranks each sends all of it, over 5 GB/s. That is
// what fills the link: two such collectives on it get half each. One that reaches 1 GB/s is bound
// by something else and keeps its nominal weight.
TEST(MpiCollectives, ALinkThatOneNearlyFillsIsFull) {
  const Cluster cluster = ranks(2);
  MpiCurve fast = curve({0, 0}), slow = fast;
  fast.samples = {{1e6, 260e-6}, {5e6, 1260e-6}};
  slow.samples = {{1e6, 1010e-6}, {5e6, 5010e-6}};
  const auto pair = devices({0, 1});
  const CollectiveCosts full(cluster, "", {fast});
  const CollectivePrice own = price(full, 5000000, {0, 1});
  EXPECT_NEAR(busiest(cluster, full.loads(own, CollectiveKind::kAllReduce, pair)) * 4e9, 1, 1e-9);
  EXPECT_LE(own.rate_bound.value(), 4e9 * (1 + 1e-12));
  const CollectiveCosts light(cluster, "", {slow});
  EXPECT_NEAR(busiest(cluster,
                      light.loads(price(light, 5000000, {0, 1}), CollectiveKind::kAllReduce, pair)),
              1 / 5e9, 1e-15);
}

// Two pairs at once, each as fast as a port. On hosts with one rank each pair has ports of its own
// and fills them alone; on hosts with two ranks both pairs share the ports. Inside a host each pair
// has the ports of its ranks.
TEST(MpiCollectives, OnlyGroupsOnTheSamePortFillItTogether) {
  const auto filled = [](int nodes, int ranks_per_node, std::initializer_list<int> pair,
                         double port) {
    const Cluster cluster = testing::cluster_from(
        R"({"accelerator": "cpu", "nodes": )" + std::to_string(nodes) + R"(, "gpus_per_node": )" +
        std::to_string(ranks_per_node) +
        R"(, "scale_up": "pcie", "scale_up_bandwidth": "100 Gb/s", "pcie": "100 Gb/s",
           "nics_per_node": 1, "nic": "100 Mb/s", "network": "tcp", "network_latency": "15 us"})");
    MpiCurve both = curve({0, nodes > 1 ? 1 : 0}, 2);
    both.samples = {{1e6, 1e6 / port}, {5e6, 5e6 / port}};
    const CollectiveCosts costs(cluster, "", {both});
    const CollectivePrice own = price(costs, 5000000, pair);
    return port * busiest(cluster, costs.loads(own, CollectiveKind::kAllReduce, devices(pair)));
  };
  EXPECT_NEAR(filled(4, 1, {0, 1}, 12.5e6), 1, 1e-9);
  EXPECT_NEAR(filled(4, 1, {2, 3}, 12.5e6), 1, 1e-9);
  EXPECT_NEAR(filled(2, 2, {0, 2}, 12.5e6), 0.5, 1e-9);
  EXPECT_NEAR(filled(1, 4, {0, 1}, 12.5e9), 1, 1e-9);
  EXPECT_NEAR(filled(1, 4, {1, 3}, 12.5e9), 1, 1e-9);
}

}  // namespace
}  // namespace stepcast
