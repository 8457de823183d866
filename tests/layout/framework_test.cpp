// SPDX-License-Identifier: Apache-2.0
// Bytes of state per parameter follow from the resolved types: parameter + gradient + master +
// Adam.
#include "layout/framework.h"

#include <gtest/gtest.h>

#include "core/each.h"
#include "core/json.h"
#include "layout/scenario_input.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

const Framework kMegatron = framework_named("megatron");
const Framework kFsdp = framework_named("fsdp");
const Framework kDeepSpeed = framework_named("deepspeed");
const Framework kNative = framework_named("native");

// `layout` is the text of the object.
Scenario resolved(Framework framework, DataType precision, const char* layout = "{}",
                  std::int64_t gpus = 64) {
  Stated stated;
  stated.training.global_batch = 1024;
  stated.training.sequence_length = 2048;
  stated.training.framework = framework;
  stated.training.precision = precision;
  for (const char* key : {"global_batch", "sequence_length", "framework", "precision"}) {
    stated.mark(std::string("training.") + key);
  }
  const auto document = JsonDocument::parse(layout, "layout.json");
  read_keys((*document)->root(), layout_keys(), stated);
  EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
  Cluster cluster;
  cluster.spec.gpus = gpus;
  return resolve(Model{}, cluster, stated);
}

// A framework's code of a month, on eight GPUs.
Scenario released(Framework framework, Release release, Stated stated = {},
                  GpuArchitecture device = GpuArchitecture::kOther) {
  stated.training.release = release;
  stated.training.framework = framework;
  stated.mark("training.framework");
  Cluster cluster;
  cluster.spec.gpus = 8;
  cluster.spec.accelerator.architecture = device;
  return resolve(Model{}, cluster, stated);
}

std::int64_t state_bytes(const Scenario& s) {
  const std::int64_t parameter = s.rules.bf16_parameters ? 2 : 4;
  const std::int64_t master = s.rules.keeps_master_weights ? 4 : 0;
  return parameter + size_of(s.training.grad_precision) + master + 8;
}

// Autocast keeps a 16-bit copy of fp32 weights from the forward to the backward.
TEST(FrameworkState, PyTorchReplicatesWithZero0) {
  const Scenario s = resolved(kFsdp, DataType::kBf16, R"({"zero": 0})");
  EXPECT_EQ(state_bytes(s), 2 + 4 + 4 + 8);
  EXPECT_FALSE(s.rules.gradients_by_unit);
  EXPECT_EQ(s.rules.bucket_elements, (25 << 20) / 4);
  EXPECT_FALSE(s.layout.overlap.param_gather);
}

TEST(FrameworkState, PyTorchShardsNothingOnOneDataRankUnlessToldTo) {
  EXPECT_EQ(resolved(kFsdp, DataType::kBf16, "{}", 1).layout.zero, 0);
  EXPECT_EQ(resolved(kFsdp, DataType::kBf16, R"({"zero": 3})", 1).layout.zero, 3);
  EXPECT_EQ(resolved(kFsdp, DataType::kBf16, R"({"tp": 2})", 2).layout.zero, 0);
  EXPECT_EQ(resolved(kFsdp, DataType::kBf16, R"({"tp": 2})", 4).layout.zero, 3);
}

TEST(FrameworkState, MegatronKeepsEighteenBytesPerParameter) {
  EXPECT_EQ(state_bytes(resolved(kMegatron, DataType::kBf16)),
            18);  // 2 + 4 + 4 + 8
  EXPECT_EQ(state_bytes(resolved(kMegatron, DataType::kFp16)), 18);
}

TEST(FrameworkState, TheOthersKeepSixteen) {
  EXPECT_EQ(state_bytes(resolved(kDeepSpeed, DataType::kFp16)),
            16);  // 2 + 2 + 4 + 8
  EXPECT_EQ(state_bytes(resolved(kNative, DataType::kBf16)), 16);
  EXPECT_EQ(state_bytes(resolved(kFsdp, DataType::kBf16)), 16);  // 4 + 4 + 0 + 8
}

TEST(FrameworkState, Fp32KeepsSixteenEverywhere) {
  for (const Framework framework : {kMegatron, kFsdp, kDeepSpeed, kNative}) {
    EXPECT_EQ(state_bytes(resolved(framework, DataType::kFp32)), 16) << name_of(framework);
  }
}

TEST(FrameworkState, GradientsAreReducedAsTheyAreStored) {
  EXPECT_EQ(resolved(kMegatron, DataType::kBf16).training.reduce_precision, DataType::kFp32);
  EXPECT_EQ(resolved(kDeepSpeed, DataType::kFp16).training.reduce_precision, DataType::kFp16);
  EXPECT_EQ(resolved(kFsdp, DataType::kBf16).training.reduce_precision, DataType::kFp32);
}

// Megatron: one bucket without overlap; with it max(40e6, 1e6 * data ranks) elements.
TEST(FrameworkBuckets, MegatronsGrowWithTheDataGroup) {
  EXPECT_EQ(resolved(kMegatron, DataType::kBf16).rules.bucket_elements, 0);
  const char* overlapped = R"({"overlap": {"grad_reduce": true, "param_gather": true}})";
  const auto rules = [&](std::int64_t gpus) {
    return resolved(kMegatron, DataType::kBf16, overlapped, gpus).rules;
  };
  EXPECT_EQ(rules(8).bucket_elements, 40'000'000);
  EXPECT_EQ(rules(64).bucket_elements, 64'000'000);
  EXPECT_EQ(rules(64).gather_bucket_elements, 64'000'000);
}

TEST(FrameworkBuckets, DeepSpeedsAndPlainDataParallelismsAreFixed) {
  EXPECT_EQ(resolved(kDeepSpeed, DataType::kFp16).rules.bucket_elements, 500'000'000);
  // 25 MiB of 2-byte gradients.
  EXPECT_EQ(resolved(kNative, DataType::kBf16).rules.bucket_elements, 13'107'200);
}

// Zero-bubble schedules fill the wait for a transfer with weight gradients.
TEST(FrameworkOverlap, MegatronPostsTransfersAheadWhereItHasWorkToHideThem) {
  const auto hides = [](const char* schedule) {
    Layout layout;
    layout.schedule = schedule_named(schedule);
    return traits_of(kMegatron).overlap(Training{}, layout).pp;
  };
  EXPECT_FALSE(hides("1f1b") || hides("gpipe"));
  EXPECT_TRUE(hides("interleaved") && hides("zb-h1"));
}

TEST(FrameworkOverlap, FollowsTheFlagsOfEachFramework) {
  const Overlap megatron = resolved(kMegatron, DataType::kBf16).layout.overlap;
  EXPECT_FALSE(megatron.grad_reduce || megatron.param_gather || megatron.tp || megatron.pp);
  const Overlap fsdp = resolved(kFsdp, DataType::kBf16).layout.overlap;
  EXPECT_TRUE(fsdp.grad_reduce && fsdp.param_gather);
  const char* zero_3 = R"({"zero": 3})";
  EXPECT_TRUE(resolved(kDeepSpeed, DataType::kBf16, zero_3).layout.overlap.grad_reduce);
  EXPECT_FALSE(resolved(kDeepSpeed, DataType::kBf16).layout.overlap.grad_reduce);
}

// Megatron's batched transfers end in a device synchronise, the interleaved schedule's overlap;
// DeepSpeed reads what it receives on the host.
TEST(FrameworkPipeline, TransfersStopTheHostUnlessOverlapped) {
  const char* layout = R"({"pp": 4})";
  EXPECT_TRUE(resolved(kMegatron, DataType::kBf16, layout).rules.host_sync_after_p2p);
  EXPECT_TRUE(resolved(kDeepSpeed, DataType::kBf16, layout).rules.host_sync_after_p2p);
  const Scenario interleaved =
      resolved(kMegatron, DataType::kBf16, R"({"pp": 4, "schedule": "interleaved"})");
  EXPECT_TRUE(interleaved.layout.overlap.pp);
  EXPECT_FALSE(interleaved.rules.host_sync_after_p2p);
}

TEST(FrameworkPipeline, TheActivationIsScatteredWhereAllTensorRanksHoldIt) {
  const auto scatters = [](const char* layout) {
    return resolved(kMegatron, DataType::kBf16, layout).rules.scatter_gather_p2p;
  };
  EXPECT_FALSE(scatters(R"({"pp": 4})"));
  EXPECT_FALSE(scatters(R"({"pp": 4, "tp": 8})"));
  EXPECT_TRUE(scatters(R"({"pp": 4, "tp": 8, "sequence_parallel": false})"));
}

// The months in which Megatron's defaults changed (docs/frameworks.md).
TEST(FrameworkRelease, MegatronsDefaultsFollowTheMonthOfItsCode) {
  const auto at = [](std::int32_t year, std::int32_t month) {
    Stated stated;
    stated.layout.tp = 2;
    stated.layout.pp = 2;
    stated.layout.schedule = schedule_named("interleaved");
    stated.layout.virtual_stages = 2;
    return released(kMegatron, Release::of(year, month), stated);
  };
  EXPECT_FALSE(at(2021, 8).rules.async_tensor_backward);
  EXPECT_TRUE(at(2021, 9).rules.async_tensor_backward);
  EXPECT_FALSE(at(2024, 8).rules.fuses_loss);
  EXPECT_TRUE(at(2024, 9).rules.fuses_loss);
  EXPECT_FALSE(released(kMegatron, Release{}, {}).rules.fuses_loss);  // a flag, off unless given
  EXPECT_TRUE(at(2026, 7).rules.biased_experts_in_steps);
  EXPECT_FALSE(at(2026, 8).rules.biased_experts_in_steps);
  EXPECT_FALSE(at(2022, 1).rules.fused_gradient_accumulation);
  EXPECT_TRUE(at(2022, 2).rules.fused_gradient_accumulation);
  EXPECT_FALSE(at(2022, 2).layout.sequence_parallel);
  EXPECT_TRUE(at(2022, 3).layout.sequence_parallel);
  EXPECT_EQ(at(2022, 11).training.attention, AttentionKernel::kUnfused);
  EXPECT_EQ(at(2022, 12).training.attention, AttentionKernel::kFlash);
  EXPECT_FALSE(at(2023, 4).layout.overlap.pp);
  EXPECT_TRUE(at(2023, 5).layout.overlap.pp);
  EXPECT_TRUE(Release{}.has(Release::of(2099, 12)));  // the newest code has everything
}

// A row that leaves one of these out would crash only where somebody asks for it.
TEST(Frameworks, EachRowSaysWhatEveryoneAsks) {
  for (const FrameworkTraits* framework : each_of(frameworks())) {
    EXPECT_NE(framework->overlap, nullptr) << framework->name;
    EXPECT_NE(framework->rules, nullptr) << framework->name;
    ASSERT_NE(framework->offers, nullptr) << framework->name;
    ASSERT_NE(framework->offers_pipeline_overlap, nullptr) << framework->name;
    EXPECT_TRUE(framework->offers(default_schedule())) << framework->name;
    EXPECT_LE(framework->least_proposed_zero, framework->most_proposed_zero) << framework->name;
  }
}

// A search may propose these alone (docs/frameworks.md).
TEST(Frameworks, OfferTheirOwnSchedules) {
  const auto offered = [](Framework framework) {
    std::string out;
    for (const std::string& name : made_schedules()) {
      if (traits_of(framework).offers(schedule_named(name))) out += name + " ";
    }
    return out;
  };
  EXPECT_EQ(offered(kMegatron), "1f1b interleaved ");
  EXPECT_EQ(offered(kDeepSpeed), "1f1b ");
  EXPECT_EQ(offered(kNative), offered(kFsdp));
  const FrameworkTraits& megatron = traits_of(kMegatron);
  EXPECT_TRUE(megatron.offers_pipeline_overlap(schedule_named("interleaved")));
  EXPECT_FALSE(megatron.offers_pipeline_overlap(default_schedule()));
  EXPECT_FALSE(traits_of(kDeepSpeed).offers_pipeline_overlap(default_schedule()));
}

TEST(FrameworkAttention, TheKernelFollowsFrameworkReleaseAndDevice) {
  const auto kernel = [](Framework framework, GpuArchitecture device, Release release = {}) {
    return released(framework, release, {}, device).training.attention_kernel;
  };
  constexpr auto kAmpere = GpuArchitecture::kAmpere, kHopper = GpuArchitecture::kHopper;
  EXPECT_EQ(kernel(kMegatron, kAmpere), "fa2");
  EXPECT_EQ(kernel(kMegatron, kHopper), "cudnn");
  EXPECT_EQ(kernel(kMegatron, kHopper, Release::of(2023, 8)), "fa2");
  EXPECT_EQ(kernel(kMegatron, kAmpere, Release::of(2023, 1)), "fa1");
  EXPECT_EQ(kernel(kMegatron, kAmpere, Release::of(2022, 1)), "unfused");
  EXPECT_EQ(kernel(kFsdp, kHopper), "fa2");
  EXPECT_EQ(kernel(kFsdp, kAmpere), "fa2");
  EXPECT_EQ(kernel(kFsdp, kHopper, Release::of(2023, 10)), "fa1");
  EXPECT_EQ(kernel(kFsdp, GpuArchitecture::kBlackwell), "cudnn");
  EXPECT_EQ(kernel(kFsdp, GpuArchitecture::kCdna3), "triton");
  EXPECT_EQ(kernel(kMegatron, GpuArchitecture::kCdna3), "fa2");
  EXPECT_EQ(kernel(kDeepSpeed, kHopper), "fa2");
  EXPECT_EQ(kernel(kNative, kHopper), "");  // the one that the profile was measured with
}

TEST(FrameworkAttention, AStatedKernelSaysWhichKindItIs) {
  const auto kind = [](const char* kernel) {
    Stated stated;
    stated.training.attention_kernel = kernel;
    stated.mark("training.attention_kernel");
    return released(kMegatron, {}, stated).training.attention;
  };
  EXPECT_EQ(kind("unfused"), AttentionKernel::kUnfused);
  EXPECT_EQ(kind("triton"), AttentionKernel::kFlash);
}

TEST(FrameworkRelease, FsdpCopiesWhatItsGenerationCopies) {
  const auto rules = [](Release release) { return released(kFsdp, release).rules; };
  EXPECT_TRUE(rules({}).copies_gathered_units);
  EXPECT_FALSE(rules({}).flattens_gradients);
  EXPECT_FALSE(rules(Release::of(2024, 3)).copies_gathered_units);
  EXPECT_TRUE(rules(Release::of(2024, 3)).flattens_gradients);
}

TEST(Frameworks, WhoeverIsADefaultSaysWhenInWords) {
  for (const FrameworkTraits* traits : each_of(frameworks())) {
    EXPECT_EQ(traits->default_for != nullptr, *traits->default_when != '\0') << traits->name;
  }
}

TEST(Frameworks, EachHasItsOwnNameAndOneIsTheExecutor) {
  for (const Framework framework : all_frameworks()) {
    EXPECT_EQ(framework_named(name_of(framework)), framework);
    EXPECT_EQ(traits_of(framework).is_own_executor, framework == own_executor());
  }
  EXPECT_EQ(default_frameworks(), (std::vector{kMegatron, kFsdp}));
  EXPECT_EQ(frameworks_with(&FrameworkTraits::is_own_executor), name_of(own_executor()));
}

}  // namespace
}  // namespace stepcast
