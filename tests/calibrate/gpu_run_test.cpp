// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu_run.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/each.h"
#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;

const std::string kText =
    R"({"device":"NVIDIA H200","host":{"launch_s":2e-06,"graph_launch_s":1e-06},)"
    R"("sustained":{"gemm":{"factor":1.1209,"operation":"gemm forward",)"
    R"("condition":{"sm_clock_mhz":1410.0,"held_by":["power_cap"]}}},)"
    R"("beside":{"all_reduce":{"product_slowdown":1.25,"slowdown":1.5,"ranks":2,"bytes":67108864},)"
    R"("copy_to_host":{"product_slowdown":1.01,"slowdown":1.02,"bytes_per_s":55000000000.0}},)"
    R"("machine":{"driver":"0.1","cuda":13}})"
    "\n";

GpuRun some_run() {
  GpuRun out;
  out.device = "NVIDIA H200";
  out.host.launch_s = 2e-6;
  out.host.graph_launch_s = 1e-6;
  out.sustained.of(GpuKernelKind::kGemm) =
      GpuRun::Sustained{1.1209, "gemm forward", {1410, 0, {"power_cap"}}};
  out.beside.all_reduce = GpuRun::Beside{1.25, 1.5, std::nullopt, 2, 64 << 20};
  out.beside.copies.to_host = GpuRun::Beside{1.01, 1.02, 5.5e10};
  out.machine["driver"] = "0.1";
  out.machine["cuda"] = 13;
  return out;
}

TEST(GpuRun, IsReadAsItWasWritten) {
  EXPECT_EQ(gpu_run_text(some_run()), kText);
  const TemporaryFolder folder;
  folder.write("gpu.json", kText);
  const auto read = load_gpu_run(folder / "gpu.json");
  ASSERT_TRUE(read) << to_string(read.error());
  GpuRun again = *read;
  EXPECT_EQ(again.sustained.of(GpuKernelKind::kGemm)->condition.held_by,
            std::set<std::string>{"power_cap"});
  EXPECT_FALSE(again.sustained.of(GpuKernelKind::kAttention));
  EXPECT_EQ(again.beside.all_reduce->ranks, 2);
  EXPECT_FALSE(again.beside.copies.on_device);
  EXPECT_EQ(again.machine["cuda"], 13);
}

// Every kind of kernel has a factor of its own.
TEST(GpuRun, KeepsTheKindsApart) {
  GpuRun run;
  std::map<GpuKernelKind, double> factors;
  for (int i = 0; i < kGpuKernelKinds; ++i) {
    const auto kind = static_cast<GpuKernelKind>(i);
    factors[kind] = 1 + 0.01 * i;
    run.sustained.of(kind) = GpuRun::Sustained{factors[kind], name_of(kind), {}};
  }
  const TemporaryFolder folder;
  folder.write("gpu.json", gpu_run_text([&] {
                 run.device = "NVIDIA H200";
                 return run;
               }()));
  const auto read = load_gpu_run(folder / "gpu.json");
  ASSERT_TRUE(read) << to_string(read.error());
  const OwnRun own = own_run_of(*read, {});
  EXPECT_EQ(own.sustained, factors);
  EXPECT_EQ(own.machine.at("sustained_gemm_fp8"), "1.010 of its time in a sample: gemm_fp8");
  EXPECT_EQ(own.machine.at("sustained_attention_backward"),
            "1.040 of its time in a sample: attention_backward");
}

// A profile says under "machine" what no cost model reads.
TEST(GpuRun, BecomesTheOwnRunOfAProfile) {
  const OwnRun own = own_run_of(some_run(), {});
  EXPECT_EQ(own.host.launch_s, 2e-6);
  EXPECT_EQ(own.host.graph_launch_s, 1e-6);
  EXPECT_EQ(own.host.collective_s, 2e-6);  // none was measured
  EXPECT_EQ(own.sustained, (std::map<GpuKernelKind, double>{{GpuKernelKind::kGemm, 1.1209}}));
  EXPECT_EQ(own.machine,
            (std::map<std::string, std::string>{
                {"sustained_gemm",
                 "1.121 of its time in a sample: gemm forward, at 1410 MHz, held by power_cap"},
                {"beside_all_reduce", "a product takes 1.250 of its time, it 1.500"},
                {"copy_to_host", "55 GB/s"},
                {"beside_copy_to_host", "a product takes 1.010 of its time, it 1.020"},
                {"driver", "0.1"},
                {"cuda", "13"}}));
}

TEST(GpuRun, TellsOfItsHostsMemory) {
  GpuRun run = some_run();
  run.host_memory = {{16, BytesPerSecond(200e9), BytesPerSecond(12e9), BytesPerSecond(7e9)}};
  const TemporaryFolder folder;
  folder.write("gpu.json", gpu_run_text(run));
  const auto read = load_gpu_run(folder / "gpu.json");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(own_run_of(*read, {}).host_memory, run.host_memory);
  EXPECT_FALSE(own_run_of(some_run(), {}).host_memory);
}

TEST(GpuRun, FaultsAreNamedByFileAndKey) {
  struct Fault {
    std::string before, after, error;
  };
  const std::vector<Fault> faults{
      {R"("device":"NVIDIA H200",)", "", "device: is required and missing"},
      {R"("launch_s":2e-06)", R"("launch_s":2)", "host.launch_s: 2 is out of range"},
      {R"("factor":1.1209)", R"("factor":0.5)", "sustained.gemm.factor: 0.5 is out of range"},
      {R"("operation":"gemm forward",)", "", "sustained.gemm.operation: is required and missing"},
      {R"("sm_clock_mhz":1410.0)", R"("sm_clock_mhz":"1410")",
       "sustained.gemm.condition.sm_clock_mhz: "},
      {R"("ranks":2)", R"("ranks":1)", "beside.all_reduce.ranks: 1 is out of range"},
      {R"("copy_to_host":)", R"("copy_to_hosts":)", "beside.copy_to_hosts: "},
      {R"({"driver":"0.1","cuda":13})", R"("0.1")", "machine: is no object of facts"},
  };
  const TemporaryFolder folder;
  for (const Fault& fault : each_of(faults)) {
    std::string text = kText;
    ASSERT_NE(text.find(fault.before), std::string::npos) << fault.before;
    text.replace(text.find(fault.before), fault.before.size(), fault.after);
    folder.write("gpu.json", text);
    const auto read = load_gpu_run(folder / "gpu.json");
    ASSERT_FALSE(read) << fault.after;
    ASSERT_EQ(read.error().size(), 1u) << to_string(read.error());
    const std::string told = to_string(read.error().front());
    EXPECT_EQ(told.find((folder / "gpu.json") + ": " + fault.error), 0u) << told;
  }
}

}  // namespace
}  // namespace stepcast
