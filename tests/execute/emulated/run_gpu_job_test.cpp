// SPDX-License-Identifier: Apache-2.0
// Tests what stepcast-gpu does when it is to run a scenario, on the emulated device.
#include "worker/gpu/run_gpu_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "execute/cuda/cuda_device.h"
#include "kernels/emulated/cudnn/emulated_cudnn.h"
#include "nccl_world.h"
#include "scenario_from.h"
#include "worker/run_place.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunGpuJob : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("stepcast-run-gpu-job-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Job job(const testing::GptCase& c) const {
    Job out;
    out.task = "run";
    out.backend = Backend::kCuda;
    out.scenario = SortedJson::parse(testing::text_of(c));
    out.data = testing::source_folders();
    out.results = folder_.string();
    out.warmup = 1;
    out.steps = 2;
    out.numerics_steps = 2;
    return out;
  }
  json result(int rank) const {
    std::ifstream file(folder_ / ("rank-" + std::to_string(rank) + ".json"));
    return json::parse(file);
  }

  fs::path folder_;
};

testing::GptCase one_layer() {
  testing::GptCase c = testing::tiny_local();
  c.cluster = R"("base": "dgx-a100-80g")";
  c.layers = 1;
  c.global_batch = 2;
  c.precision = "bf16";
  return c;
}

void expect_measured(const json& result) {
  ASSERT_EQ(result["steps"].size(), 2U);
  double end = 0;
  for (const json& step : result["steps"]) {
    EXPECT_GE(step["begin_s"].get<double>(), end);
    end = step["end_s"];
    EXPECT_GE(end, step["begin_s"].get<double>());  // no time passes on the emulated device
    EXPECT_FALSE(step["spans"].empty());
  }
  EXPECT_GT(result["operations"].size(), 10U);
  EXPECT_GE(result["device_used_bytes"].get<std::int64_t>(),
            result["peak_memory_bytes"].get<std::int64_t>());
}

TEST_F(RunGpuJob, OneGpuIsHeldAgainstFp32) {
  RankReporter report(0, -1);
  run_gpu_job(job(one_layer()), 0, nullptr, DeviceUse(), report);
  const json out = result(0);
  expect_measured(out);
  EXPECT_LT(out["numerics"]["loss_relative_error"].get<double>(), 1e-2);
  EXPECT_FALSE(out["numerics"].contains("parameter_relative_error"));
}

TEST_F(RunGpuJob, TheReferenceHasADeviceOfItsOwn) {
  const Job once = job(one_layer());
  RankReporter report(0, -1);
  int own = 0, reference = 0;
  const auto device = [](int& count) {
    return [&count]() -> std::unique_ptr<Device> {
      ++count;
      return std::make_unique<CudaDevice>(cuda::GemmSettings{});
    };
  };
  run_job({.job = once,
           .report = report,
           .host = "here",
           .rank = RankId(0),
           .world = nullptr,
           .all_reduce = [](std::span<float>, Reduction) {},
           .device = device(own),
           .reference_device = device(reference)});
  EXPECT_EQ(own, 1);
  EXPECT_EQ(reference, 1);
  EXPECT_TRUE(result(0).contains("numerics"));
}

TEST_F(RunGpuJob, WarnsWhereItsOwnAttentionRunsBecauseCudnnFails) {
  Job once = job(one_layer());
  once.numerics_steps = 0;
  const std::string said = folder_ / "said";
  const int file = ::open(said.c_str(), O_CREAT | O_WRONLY, 0600);
  RankReporter report(0, file);
  emulated::fail_cudnn_executions(true);
  run_gpu_job(once, 0, nullptr, DeviceUse(), report);
  emulated::fail_cudnn_executions(false);
  ::close(file);
  std::ifstream lines(said);
  const std::string text{std::istreambuf_iterator<char>(lines), {}};
  EXPECT_NE(text.find(R"("warning")"), std::string::npos) << text;
  EXPECT_NE(text.find("attention is by the own kernels: cuDNN 9.19.0 fails"), std::string::npos)
      << text;
}

TEST_F(RunGpuJob, EveryRankOfSeveralWritesItsResult) {
  testing::GptCase c = one_layer();
  c.tp = 2;
  emulated::as_each_gpu(2, [&](auto world) {
    RankReporter report(world->rank(), -1);
    run_gpu_job(job(c), world->rank(), world.get(), DeviceUse(), report);
  });
  for (int rank = 0; rank < 2; ++rank) {
    expect_measured(result(rank));
    EXPECT_EQ(result(rank)["tp"], rank);
  }
}

TEST_F(RunGpuJob, OneRankOfALargerLayoutRunsAlone) {
  testing::GptCase c = one_layer();
  c.tp = 4;
  c.pp = 2;
  c.layers = 2;
  Job alone = job(c);
  alone.rank = 5;  // of the second stage
  alone.numerics_steps = 0;
  RankReporter report(0, -1);
  run_gpu_job(alone, 0, nullptr, DeviceUse(), report);
  expect_measured(result(5));
  EXPECT_EQ(result(5)["stage"], 1);
  EXPECT_FALSE(result(5).contains("numerics"));
}

TEST_F(RunGpuJob, MoreRanksThanProcessesAreRefused) {
  testing::GptCase c = one_layer();
  c.tp = 2;
  RankReporter report(0, -1);
  EXPECT_THROW(run_gpu_job(job(c), 0, nullptr, DeviceUse(), report), JobFailure);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace stepcast
