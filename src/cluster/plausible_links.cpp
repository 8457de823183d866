// SPDX-License-Identifier: Apache-2.0
#include "cluster/plausible_links.h"

#include <fmt/format.h>

#include <string>

#include "cluster/topology.h"

namespace stepcast {
namespace {

struct Limit {
  LinkKind kind;
  const char* name;
  BytesPerSecond capacity;
  const char* fastest;  // that is known
  Seconds latency;
  const char* slowest;
};

// Twice what is announced, and latencies of ten times what is usual. Trunks of a fabric carry what
// their cables carry together, and may join two continents.
constexpr Limit kLimits[] = {
    {LinkKind::kNvlink, "an NVLink port", BytesPerSecond(3.6e12),
     "the sixth NVLink has 1.8 TB/s a GPU and direction", Seconds(20e-6),
     "a hop over NVSwitches takes 1 us"},
    {LinkKind::kPcie, "PCIe", BytesPerSecond(484e9), "16 lanes of PCIe 7 have 242 GB/s",
     Seconds(20e-6), "a hop over PCIe takes 1 us"},
    {LinkKind::kNic, "a NIC", BytesPerSecond(400e9), "NICs of 1.6 Tb/s are announced",
     Seconds(1e-3), "from NIC to NIC InfiniBand takes 1 us, TCP 20 us"},
    {LinkKind::kFabric, "a trunk of the fabric", BytesPerSecond(1e15),
     "switches of 100 Tb/s are sold", Seconds(0.3),
     "light takes 70 ms to the other side of the earth"},
};

// How many links break a rule, and the first of them.
struct Broken {
  std::size_t links = 0;
  LinkId first;
  void add(LinkId link) {
    if (links++ == 0) first = link;
  }
};

std::string which(const Topology& topology, const Broken& broken) {
  const std::string first = fmt::format("the link {}", topology.name(broken.first));
  if (broken.links == 1) return first;
  return fmt::format("{} (and {} others)", first, broken.links - 1);
}

}  // namespace

Errors implausible_links(const Topology& topology) {
  Errors out;
  const auto fail = [&](std::string message, const char* known) {
    out.push_back({ErrorCode::kBadValue, std::move(message), "", "",
                   fmt::format("{}; look at the unit: Gb/s are bits, GB/s bytes", known)});
  };
  for (const Limit& limit : kLimits) {
    Broken fast, late;
    for (std::size_t i = 0; i < topology.links().size(); ++i) {
      const Link& link = topology.links()[i];
      if (link.kind != limit.kind) continue;
      if (link.capacity > limit.capacity) fast.add(LinkId(i));
      if (link.latency > limit.latency) late.add(LinkId(i));
    }
    if (fast.links > 0) {
      const Link& link = topology.links()[fast.first.index()];
      fail(fmt::format("{} carries {:.4g} GB/s, more than {} can", which(topology, fast),
                       link.capacity.value() * 1e-9, limit.name),
           limit.fastest);
    }
    if (late.links > 0) {
      const Link& link = topology.links()[late.first.index()];
      fail(fmt::format("{} has a latency of {:g} s, longer than {} has", which(topology, late),
                       link.latency.value(), limit.name),
           limit.slowest);
    }
  }
  return out;
}

}  // namespace stepcast
