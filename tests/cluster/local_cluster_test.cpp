// SPDX-License-Identifier: Apache-2.0
#include "cluster/local_cluster.h"

#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::kTopologies;
using testing::read;

constexpr char kAmd[] =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 1996.117\n"
    "flags\t\t: fpu sse2 ssse3 fma avx avx2\nbogomips\t: 4890.85\n\n"
    "processor\t: 1\nmodel name\t: second\n";
constexpr char kIntel[] =
    "vendor_id : GenuineIntel\nmodel name : Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\n"
    "cpu MHz : 3200.000\nflags : avx avx2 avx512f fma\nbogomips : 5000.00\n";
constexpr char kArm[] = "processor : 0\nBogoMIPS : 50.00\nFeatures : fp asimd crc32\n";
constexpr char kMemory[] = "MemTotal:       24682416 kB\nMemFree:        22704116 kB\n";

TEST(MachineFacts, AreReadFromTheSystemsFiles) {
  const MachineFacts facts = parse_machine(kAmd, kMemory, "");
  EXPECT_EQ(facts.processor, "AMD EPYC");
  EXPECT_EQ(facts.vendor, "AuthenticAMD");
  EXPECT_EQ(facts.vector_bits, 256);
  EXPECT_TRUE(facts.fused_multiply_add);
  EXPECT_EQ(facts.memory, 24682416LL * 1024);
}

// "cpu MHz" follows the load; bogomips is twice the counter's rate and does not.
TEST(MachineFacts, TakeTheClockThatDoesNotChange) {
  EXPECT_DOUBLE_EQ(parse_machine(kAmd, kMemory, "").clock_hz, 4890.85e6 / 2);
  EXPECT_DOUBLE_EQ(parse_machine(kAmd, kMemory, "3675000\n").clock_hz, 3.675e9);
  EXPECT_DOUBLE_EQ(parse_machine(kIntel, kMemory, "").clock_hz, 2.5e9);
  EXPECT_EQ(parse_machine(kArm, kMemory, "").clock_hz, 0);
}

// Two vector operations per cycle, each multiply-add of every lane two operations.
TEST(CpuAccelerator, PeakIsClockTimesLanes) {
  const Accelerator amd = cpu_accelerator(parse_machine(kAmd, kMemory, ""), 4);
  EXPECT_DOUBLE_EQ(amd.peak(DataType::kFp32)->value(), 4890.85e6 / 2 * 2 * 8 * 2);
  EXPECT_EQ(amd.memory, 24682416LL * 1024 / 4);
  EXPECT_EQ(amd.sm_count, 1);
  EXPECT_FALSE(amd.peak(DataType::kBf16));
  const Accelerator intel = cpu_accelerator(parse_machine(kIntel, kMemory, ""), 1);
  EXPECT_DOUBLE_EQ(intel.peak(DataType::kFp32)->value(), 2.5e9 * 2 * 16 * 2);
  const Accelerator arm = cpu_accelerator(parse_machine(kArm, kMemory, ""), 1);
  EXPECT_DOUBLE_EQ(arm.peak(DataType::kFp32)->value(), 2e9 * 2 * 4 * 2);
  EXPECT_NE(arm.notes.find("assumed"), std::string::npos);
}

TEST(CpuAccelerator, IsFoundByName) {
  const auto cpu = find_accelerator("cpu", kTopologies);
  ASSERT_TRUE(cpu.has_value());
  const MachineFacts machine = this_machine();
  EXPECT_EQ(cpu->title, machine.processor);
  EXPECT_EQ(cpu->cores, machine.cores);
  EXPECT_EQ(cpu->memory, machine.memory / machine.cores);
}

TEST(LocalCluster, HasARankPerCore) {
  const MachineFacts machine = this_machine();
  for (const char* text : {R"("local")", R"("localx1")", R"({"base": "local"})"}) {
    const Cluster cluster = cluster_from(text);
    EXPECT_EQ(cluster.gpus(), std::min(machine.cores, kMaxLocalRanks)) << text;
    EXPECT_EQ(cluster.spec.nodes, 1);
    EXPECT_EQ(cluster.spec.shared_cores, machine.cores);
    EXPECT_TRUE(cluster.topology.check().empty()) << to_string(cluster.topology.check());
  }
}

TEST(LocalCluster, HoldsMoreRanksThanCores) {
  const Cluster cluster = cluster_from(R"({"base": "local", "gpus": 64, "shared_cores": 2})");
  EXPECT_EQ(cluster.gpus(), 64);
  EXPECT_EQ(cluster.spec.gpus_per_node, 64);
  EXPECT_EQ(cluster.spec.shared_cores, 2);
  EXPECT_EQ(cluster.spec.accelerator.memory, this_machine().memory / 64);
  EXPECT_EQ(cluster.topology.route(DeviceId(0), DeviceId(63)).size(), 2u);  // in and out of memory
  EXPECT_TRUE(cluster.topology.check().empty());
}

TEST(LocalCluster, MayBeWrittenOutAsHostsOfAnIrregularCluster) {
  const Cluster cluster = cluster_from(R"({"accelerator": "cpu", "shared_cores": 2,
      "network": "tcp", "vertices": [
        {"name": "a", "kind": "gpu", "node": 0}, {"name": "pa", "kind": "pcie", "node": 0},
        {"name": "na", "kind": "nic", "node": 0}, {"name": "b", "kind": "gpu", "node": 1},
        {"name": "pb", "kind": "pcie", "node": 1}, {"name": "nb", "kind": "nic", "node": 1},
        {"name": "bridge", "kind": "leaf"}],
      "links": [{"between": ["a", "pa"], "capacity": "5 GB/s"},
        {"between": ["pa", "na"], "capacity": "5 GB/s"},
        {"between": ["b", "pb"], "capacity": "5 GB/s"},
        {"between": ["pb", "nb"], "capacity": "5 GB/s"},
        {"between": ["na", "bridge"], "capacity": "1 Gb/s", "latency": "50 us"},
        {"between": ["nb", "bridge"], "capacity": "1 Gb/s", "latency": "50 us"}]})");
  EXPECT_TRUE(cluster.spec.accelerator.is_cpu());
  EXPECT_EQ(cluster.spec.shared_cores, 2);
  EXPECT_EQ(cluster.spec.accelerator.memory, this_machine().memory / 2);
}

TEST(LocalCluster, AnotherMachineIsDescribedByAnObject) {
  const Cluster cluster = cluster_from(R"({"base": "local", "gpus": 4, "shared_cores": 8,
      "accelerator": {"name": "their-cpu", "title": "Their CPU", "architecture": "cpu", "cores": 8,
        "sm_count": 1, "memory": "2 GiB", "memory_bandwidth": "12 GB/s",
        "dense_peak": {"fp32": "0.1 TFLOP/s"}}})");
  EXPECT_EQ(cluster.spec.accelerator.title, "Their CPU");
  EXPECT_EQ(cluster.spec.accelerator.cores, 8);
  EXPECT_EQ(cluster.spec.accelerator.memory, 2LL << 30);
}

}  // namespace
}  // namespace stepcast
