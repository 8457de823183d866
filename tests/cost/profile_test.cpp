// SPDX-License-Identifier: Apache-2.0
#include "cost/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/temporary_folder.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "places.h"

namespace stepcast {
namespace {

using nlohmann::json;

const std::string kShipped = source_folder() + "/calibrate/profiles";

json small_profile() {
  return json::parse(R"({
    "stepcast_profile": 1, "name": "small", "device": "round", "provenance": "interpolated",
    "fitted_on": ["a table"],
    "log_error": {"gemm": 0.05, "attention": 0.06, "memory_bound": 0.1, "host": 0.3,
                  "collective": 0.1, "point_to_point": 0.1},
    "curves": [
      {"operation": "gemm", "precision": "bf16",
       "form": {"efficiency": 0.7, "overhead": "3 us", "role_factor": [1, 0.9, 1.1]},
       "samples": {"provenance": "measured", "reach": 0.4, "shrinkage": 0.1,
         "columns": ["role", "batch", "m", "n", "k", "output_bytes", "accumulate", "median"],
         "rows": [["weight_gradient", 1, 64, 128, 256, 4, 1, 0.5]]}},
      {"operation": "attention", "kernel": "fa2", "frameworks": ["fsdp", "native"],
       "form": {"forward_efficiency": 0.6, "backward_efficiency": 0.5}},
      {"operation": "memory_bound",
       "form": {"fraction": 0.8, "overhead": "1.5 us", "kind_factor": {"softmax": 1.2}}}
    ]})");
}

Result<Profile> load(const json& document) {
  const testing::TemporaryFolder folder;
  folder.write("profile.json", document.dump());
  return load_profile(folder / "profile.json", folder / "");
}

void expect_error(const json& document, const std::string& path, const std::string& part) {
  const auto result = load(document);
  ASSERT_FALSE(result) << "accepted, expected: " << part;
  EXPECT_NE(to_string(result.error()).find(part), std::string::npos) << to_string(result.error());
  EXPECT_EQ(result.error().front().path, path);
}

TEST(Profile, ReadsWhatCollectivesTakeFromKernels) {
  EXPECT_EQ(load(small_profile())->sms_per_channel, 1);
  json measured = small_profile();
  measured["overlap"] = {{"sms_per_channel", 1.4}};
  EXPECT_EQ(load(measured)->sms_per_channel, 1.4);
  measured["overlap"]["sms_per_chanel"] = 2;
  expect_error(measured, "overlap.sms_per_chanel", "sms_per_channel");
  measured["overlap"] = {{"sms_per_channel", -1}};
  expect_error(measured, "overlap.sms_per_channel", "-1");
}

TEST(Profile, ReadsWhatTheHostsMemoryReaches) {
  EXPECT_FALSE(load(small_profile())->host_memory);
  json measured = small_profile();
  measured["host_memory"] = {{"provenance", "measured"},
                             {"cores", 64},
                             {"update", "200 GB/s"},
                             {"update_one_core", "12.5 GB/s"},
                             {"copy_one_core", "7 GB/s"}};
  const HostMemory read = *load(measured)->host_memory;
  EXPECT_EQ(read, (HostMemory{64, BytesPerSecond(200e9), BytesPerSecond(12.5e9),
                              BytesPerSecond(7e9), Provenance::kMeasured}));
  measured["host_memory"]["update"] = "0 GB/s";
  expect_error(measured, "host_memory.update", "out of range");
  measured["host_memory"].erase("update");
  expect_error(measured, "host_memory.update", "required");
}

TEST(Profile, ReadsFormsSamplesAndErrors) {
  const auto profile = load(small_profile());
  ASSERT_TRUE(profile) << to_string(profile.error());
  EXPECT_EQ(profile->name, "small");
  EXPECT_EQ(profile->provenance, Provenance::kInterpolated);
  EXPECT_DOUBLE_EQ(profile->gemm.efficiency, 0.7);
  EXPECT_DOUBLE_EQ(profile->gemm.overhead_s, 3e-6);
  EXPECT_DOUBLE_EQ(profile->gemm.role_factor[2], 1.1);
  ASSERT_EQ(profile->gemm_samples.size(), 1u);
  EXPECT_EQ(profile->gemm_samples[0].role, GemmRole::kWeightGradient);
  EXPECT_EQ(profile->gemm_samples[0].k, 256);
  EXPECT_EQ(profile->gemm_samples[0].output_bytes, 4);
  EXPECT_TRUE(profile->gemm_samples[0].accumulate);
  ASSERT_NE(profile->variant("fa2"), nullptr);
  EXPECT_EQ(profile->attention_kernel[framework_named("fsdp")], "fa2");
  EXPECT_EQ(profile->attention_kernel[framework_named("megatron")], "");
  EXPECT_DOUBLE_EQ(profile->attention.forward_efficiency, 0.6);
  EXPECT_DOUBLE_EQ(profile->memory.kind_factor[static_cast<std::size_t>(MemoryBoundKind::kSoftmax)],
                   1.2);
  EXPECT_DOUBLE_EQ(profile->sigma[static_cast<std::size_t>(Curve::kAttention)], 0.06);
  EXPECT_EQ(profile->fitted_on, std::vector<std::string>{"a table"});
}

// An operation measured as it stands is off by 2 % if the profile does not say.
TEST(Profile, KnowsTheErrorOfExactOperations) {
  constexpr auto kExact = static_cast<std::size_t>(Curve::kExact);
  json document = small_profile();
  EXPECT_EQ(load(document)->sigma[kExact], 0.02);
  document["log_error"]["exact"] = 0.04;
  EXPECT_EQ(load(document)->sigma[kExact], 0.04);
}

TEST(Profile, ReadsExactOperationsAndAnFp32Surface) {
  json document = small_profile();
  document["curves"].push_back(
      {{"operation", "exact"},
       {"samples",
        {{"columns", {"signature", "mean", "deviation", "median", "p10", "p90", "n"}},
         {"rows",
          {{"gemm forward 1x512x1024x256 fp32 fp32", 1.23e-4, 1e-5, 1.21e-4, 1.2e-4, 1.3e-4,
            50}}}}}});
  json fp32 = document["curves"][0];
  fp32["precision"] = "fp32";
  fp32["form"]["efficiency"] = 0.8;
  document["curves"].push_back(fp32);
  const auto profile = load(document);
  ASSERT_TRUE(profile) << to_string(profile.error());
  ASSERT_EQ(profile->exact.size(), 1u);
  const ExactTime& exact = profile->exact.at("gemm forward 1x512x1024x256 fp32 fp32");
  EXPECT_EQ(exact.mean.value(), 1.23e-4);
  EXPECT_NEAR(exact.jitter.tail.value(), 0.02e-4, 1e-12);
  // p10 and p90 of a normal distribution are 2.563 deviations apart; the rest is disturbances.
  const double body = 0.1e-4 / kP10ToP90;
  EXPECT_NEAR(exact.jitter.variance_s2, body * body, 1e-15);
  EXPECT_NEAR(exact.jitter.tail_variance_s2, 1e-10 - body * body, 1e-15);
  ASSERT_TRUE(profile->gemm_fp32);
  EXPECT_EQ(profile->gemm_fp32->fit.efficiency, 0.8);
  EXPECT_EQ(profile->gemm_fp32->samples.size(), 1u);
  EXPECT_EQ(profile->gemm.efficiency, 0.7);
  EXPECT_EQ(profile->gemm_samples.size(), 1u);
}

TEST(Profile, ReadsCollectivesBetweenProcesses) {
  json document = small_profile();
  const json curve = {{"operation", "collective"},
                      {"transport", "mpi"},
                      {"collective", "send_recv"},
                      {"ranks", 2},
                      {"placement", {0, 1}},
                      {"concurrent", 2},
                      {"cpu_share", 0.25},
                      {"stretch", 1.5},
                      {"samples", {{2e6, 3e-3}, {1e6, 2e-3}}}};
  document["curves"].push_back(curve);
  const auto profile = load(document);
  ASSERT_TRUE(profile) << to_string(profile.error());
  ASSERT_EQ(profile->mpi.size(), 1u);
  const MpiCurve& read = profile->mpi.front();
  EXPECT_EQ(read.kind, CollectiveKind::kSendReceive);
  EXPECT_EQ(read.placement, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(read.concurrent, 2);
  EXPECT_EQ(read.cpu_share, 0.25);
  EXPECT_EQ(read.stretch, 1.5);
  EXPECT_EQ(read.samples.front().bytes, 1e6);  // in order of size

  const auto refused = [&](const char* key, const json& value, const std::string& path,
                           const std::string& part) {
    document["curves"][3] = curve;
    document["curves"][3][key] = value;
    expect_error(document, "curves[3]." + path, part);
  };
  refused("placement", {0, 1, 1}, "placement", "3 nodes for 2 ranks");
  refused("samples", json::array({json::array({1e6, 2e-3})}), "samples", "two sizes or more");
  refused("samples", {{1e6, 2e-3}, {1e6, 3e-3}}, "samples", "stand twice");
  refused("samples", {{1e6, 2e-3}, {2e6, -1}}, "samples[1]", "more than 0");
  refused("collective", "gather", "collective", "all_gather");
  refused("transport", "tcp", "transport", "mpi");
  refused("cpu_share", 1.5, "cpu_share", "1.5");
  refused("stretch", 0.5, "stretch", "0.5");
}

TEST(Profile, AMeasuredHostTakesThePlaceOfTheFrameworks) {
  json document = small_profile();
  document["machine"] = {{"processor", "A CPU"}, {"cores", 2}, {"hostname", "here"}};
  document["host"] = {{"launch", "50 ns"}, {"collective", "5 us"}, {"step", "0 s"}};
  const auto profile = load(document);
  ASSERT_TRUE(profile) << to_string(profile.error());
  EXPECT_EQ(profile->machine.processor, "A CPU");
  EXPECT_EQ(profile->machine.cores, 2);
  for (const Framework framework : all_frameworks()) {
    const HostFit& host = profile->host[framework];
    EXPECT_NEAR(host.launch_s, 50e-9, 1e-20);
    EXPECT_NEAR(host.collective_s, 5e-6, 1e-18);
    EXPECT_EQ(host.graph_launch_s, 0);
    EXPECT_EQ(host.backward_factor, 1);
  }
}

TEST(Profile, RefusesAnotherFormatNamingItsOwn) {
  json document = small_profile();
  document["stepcast_profile"] = 2;
  const auto result = load(document);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().front().code, ErrorCode::kFormat);
  EXPECT_NE(to_string(result.error()).find("is not read"), std::string::npos);
}

TEST(Profile, ErrorsNameTheirKeyPath) {
  json document = small_profile();
  document["curves"][0]["form"]["effciency"] = 1;
  expect_error(document, "curves[0].form.effciency", "efficiency");
  document = small_profile();
  document["curves"][0]["samples"]["rows"][0][3] = "wide";
  expect_error(document, "curves[0].samples.rows[0]", "wide");
  document = small_profile();
  document["curves"][0]["samples"]["rows"][0].erase(2);
  expect_error(document, "curves[0].samples.rows[0]", "8 cells");
  document = small_profile();
  document["curves"][0]["samples"]["columns"][1] = "b";
  EXPECT_FALSE(load(document));
  document = small_profile();
  document["curves"][0]["form"]["overhead"] = 3;
  expect_error(document, "curves[0].form.overhead", "3");
  document = small_profile();
  document["curves"][0]["form"]["role_factor"] = {1, 1};
  expect_error(document, "curves[0].form.role_factor", "2 numbers where 3 are due");
  document = small_profile();
  document["curves"][1]["frameworks"][0] = "fdsp";
  expect_error(document, "curves[1].frameworks[0]", "fsdp");
  document = small_profile();
  document.erase("log_error");
  expect_error(document, "log_error", "log_error");
}

TEST(Profile, ListsEveryErrorOfAFile) {
  json document = small_profile();
  document["curves"][0]["form"]["efficiency"] = -1;
  document["curves"][2]["form"]["fraction"] = "most";
  document["provenance"] = "guessed";
  const auto result = load(document);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().size(), 3u) << to_string(result.error());
}

TEST(Profile, AnUnknownNameGetsTheNearestProfile) {
  const auto result = load_profile("h100-sxm5-80", kShipped);
  ASSERT_FALSE(result);
  EXPECT_NE(to_string(result.error()).find("h100-sxm5-80g"), std::string::npos);
  EXPECT_FALSE(load_profile("hosts", kShipped));  // other data of the same folder
}

TEST(Profile, HostsComeFromTheFileBesideTheProfiles) {
  auto document = JsonDocument::parse(
      R"({"stepcast_hosts": 1, "frameworks": {"deepspeed": {"launch": "9 us", "step": "2 ms",
          "fitted_on": ["a-case"]}}})",
      "hosts.json");
  ASSERT_TRUE(document);
  Profile profile;
  const ByFramework<HostFit>& hosts = profile.host;
  const Framework other = framework_named("fsdp");
  const double untouched = hosts[other].launch_s;
  read_hosts(**document, profile);
  EXPECT_TRUE((*document)->ok());
  EXPECT_EQ(profile.fitted_on, std::vector<std::string>{"a-case"});
  EXPECT_DOUBLE_EQ(hosts[framework_named("deepspeed")].launch_s, 9e-6);
  EXPECT_DOUBLE_EQ(hosts[framework_named("deepspeed")].step_s, 2e-3);
  EXPECT_DOUBLE_EQ(hosts[other].launch_s, untouched);
}

TEST(ShippedProfiles, PriceEveryAcceleratorThatNamesOne) {
  const auto accelerators = list_accelerators(source_folder() + "/topologies");
  ASSERT_TRUE(accelerators) << to_string(accelerators.error());
  for (const Accelerator& accelerator : *accelerators) {
    Profile profile = data_sheet_profile(accelerator);
    if (!accelerator.profile.empty()) {
      auto loaded = load_profile(accelerator.profile, kShipped);
      ASSERT_TRUE(loaded) << to_string(loaded.error());
      profile = std::move(*loaded);
    }
    const KernelCosts costs(accelerator, profile, KernelStyle::kFused, framework_named("megatron"));
    const Gemm gemm{GemmRole::kForward, 1,    8192, 8192, 8192, DataType::kBf16,
                    DataType::kBf16,    false};
    const double share = flops_of(gemm) / costs.price(gemm).time.value() /
                         matrix_peak(accelerator, DataType::kBf16).value();
    EXPECT_GT(share, 0.35) << accelerator.name;
    EXPECT_LT(share, 0.9) << accelerator.name;
  }
}

}  // namespace
}  // namespace stepcast
