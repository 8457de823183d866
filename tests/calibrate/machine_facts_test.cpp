// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/machine_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "core/json_tree.h"
#include "core/temporary_folder.h"
#include "core/utc_date.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;
using Json = Json;

const std::string kCpus = "sys/devices/system/cpu/";

void write_processor(const TemporaryFolder& folder) {
  folder.write("proc/cpuinfo",
               "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Test 9000 @ 3.00GHz\nflags\t: x\n");
  folder.write("proc/meminfo", "MemTotal:       24682416 kB\nMemFree: 1 kB\n");
  const char* const packages[] = {"0", "1", "0", "1"};
  for (int i = 0; i < 4; ++i) {
    folder.write(kCpus + "cpu" + std::to_string(i) + "/topology/physical_package_id",
                 std::string(packages[i]) + "\n");
  }
  folder.write(kCpus + "cpu0/cpufreq/scaling_governor", "performance\n");
  const auto cache = [&](int index, const std::string& level, const std::string& type,
                         const std::string& size, const std::string& sharers) {
    const std::string place = kCpus + "cpu0/cache/index" + std::to_string(index) + "/";
    folder.write(place + "level", level + "\n");
    folder.write(place + "type", type + "\n");
    folder.write(place + "size", size + "\n");
    folder.write(place + "shared_cpu_list", sharers + "\n");
  };
  cache(0, "1", "Data", "32K", "0");
  cache(1, "1", "Instruction", "48K", "0");
  cache(2, "2", "Unified", "1024K", "0,2");
  cache(3, "3", "Unified", "33792K", "0-3,8");
}

TEST(MachineFacts, AreWhatTheKernelSays) {
  const TemporaryFolder folder;
  write_processor(folder);
  const MachineDescription facts =
      read_machine_facts({"OpenBLAS 0.3.21 Zen", "2026-01-31", folder / ""});
  const Json json = to_json(facts);
  EXPECT_EQ(json["processor"], "Test 9000 @ 3.00GHz");
  EXPECT_EQ(json["sockets"], 2);
  EXPECT_EQ(json["memory"], "23.5 GiB");  // 24682416/2^20 = 23.54
  EXPECT_EQ(json["governor"], "performance");
  EXPECT_EQ(json["caches"],
            Json({"L1d 32 KiB", "L1i 48 KiB", "L2 1 MiB shared by 2", "L3 33 MiB shared by 5"}));
  EXPECT_EQ(json["blas"], "OpenBLAS 0.3.21 Zen");
  EXPECT_EQ(json["date"], "2026-01-31");
  EXPECT_FALSE(json["hostname"].get<std::string>().empty());
  EXPECT_EQ(json["system"].get<std::string>().find("Linux "), 0u);
  EXPECT_GE(json["cores"].get<int>(), 1);
  EXPECT_EQ(json.begin().key(), "processor");
}

TEST(MachineFacts, AnArmProcessorIsNamedByItsNumbers) {
  const TemporaryFolder folder;
  folder.write("proc/cpuinfo", "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  const MachineDescription facts = read_machine_facts({"", "", folder / ""});
  EXPECT_NE(facts.processor.find("implementer 0x41 part 0xd0c"), std::string::npos)
      << facts.processor;
}

TEST(MachineFacts, WhatIsUnknownIsLeftOut) {
  const TemporaryFolder folder;
  const Json json = to_json(read_machine_facts({"", "2026-01-31", folder / ""}));
  for (const char* key : {"sockets", "caches", "memory", "governor", "blas"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  EXPECT_GE(json["cores"].get<int>(), 1);
}

TEST(MachineFacts, AControlGroupAndThoseAboveItLimitCoresAndMemory) {
  const TemporaryFolder folder;
  write_processor(folder);
  folder.write("proc/self/cgroup", "0::/pod/container\n");
  folder.write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  folder.write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");  // half a processor
  folder.write("sys/fs/cgroup/pod/container/memory.max", "2147483648\n");
  folder.write("sys/fs/cgroup/pod/memory.max", "max\n");
  const MachineDescription facts = read_machine_facts({"", "", folder / ""});
  EXPECT_EQ(facts.cores, 1);
  EXPECT_EQ(facts.memory_bytes, 2147483648);
}

TEST(MachineFacts, TheIdentityOutlivesADayAndAnUpdate) {
  const TemporaryFolder folder;
  write_processor(folder);
  MachineDescription facts = read_machine_facts({"OpenBLAS 0.3.21", "2026-01-31", folder / ""});
  const Json before = machine_identity(facts);
  facts.date = "2026-02-01";
  facts.system = "Linux 7.0 x86_64";
  EXPECT_EQ(machine_identity(facts), before);
  facts.blas = "OpenBLAS 0.3.22";
  EXPECT_NE(machine_identity(facts), before);
}

TEST(MachineFacts, DatesAreUtc) {
  EXPECT_EQ(utc_date(0), "1970-01-01");
  EXPECT_EQ(utc_date(951782399), "2000-02-28");  // 2000-02-28 23:59:59
  EXPECT_EQ(utc_date(951782400), "2000-02-29");
}

TEST(MachineFacts, ThisMachineHasAProcessorAndMemory) {
  const MachineDescription facts = read_machine_facts({});
  EXPECT_FALSE(facts.processor.empty());
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_EQ(facts.date.size(), 10u);
}

}  // namespace
}  // namespace stepcast
