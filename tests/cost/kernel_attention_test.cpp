// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cost/attention_cost.h"
#include "cost/kernel_cost.h"
#include "operation/attention_parts.h"

namespace stepcast {
namespace {

Accelerator even_device() {
  Accelerator out;
  out.name = "round";
  out.sm_count = 100;
  out.memory_bandwidth = BytesPerSecond(1e12);
  out.dense_peak[DataType::kBf16] = FlopsPerSecond(100e12);
  return out;
}

Attention attention(bool backward, std::int64_t heads, std::int64_t length, bool causal) {
  return {backward, 1, heads, heads, length, length, 128, causal, DataType::kBf16};
}

AttentionFit flat_form() {
  AttentionFit fit;
  fit.forward_efficiency = 0.5;
  fit.backward_efficiency = 0.4;
  return fit;
}

TEST(AttentionForm, CountsHalfWhenCausalAndTwoAndAHalfTimesBackward) {
  // Two products of 2 s^2 d each per head.
  const double full = 4.0 * 8 * 1024 * 1024 * 128;
  EXPECT_DOUBLE_EQ(flops_of(attention(false, 8, 1024, false)), full);
  EXPECT_DOUBLE_EQ(flops_of(attention(false, 8, 1024, true)), full / 2);
  EXPECT_DOUBLE_EQ(flops_of(attention(true, 8, 1024, false)), 2.5 * full);
}

TEST(AttentionForm, WithoutLossesRunsAtItsEfficiency) {
  const Attention long_one = attention(false, 64, 16384, false);
  const double expected = flops_of(long_one) / (0.5 * 100e12);
  EXPECT_NEAR(attention_form_time(flat_form(), even_device(), long_one).value() / expected, 1,
              1e-12);
}

TEST(AttentionForm, HalvesAtItsHalfLengthAndHalfOccupancy) {
  AttentionFit fit = flat_form();
  const Attention some = attention(false, 50, 512, false);  // 200 blocks, 2 per SM
  const double bare = attention_form_time(fit, even_device(), some).value();
  fit.length_half = 512;
  EXPECT_NEAR(attention_form_time(fit, even_device(), some).value() / bare, 2, 1e-9);
  fit.length_half = 0;
  fit.blocks_half = 2;
  EXPECT_NEAR(attention_form_time(fit, even_device(), some).value() / bare, 2, 1e-9);
}

TEST(AttentionForm, PadsHeadDimensionsToMultiplesOf32) {
  Attention narrow = attention(false, 64, 8192, false);
  narrow.head_dim = 80;
  Attention padded = narrow;
  padded.head_dim = 96;
  EXPECT_NEAR(attention_form_time(flat_form(), even_device(), narrow) /
                  attention_form_time(flat_form(), even_device(), padded),
              1, 1e-9);
}

TEST(AttentionForm, ComputeOfAStepIsSlowerThanThatOfAShortRun) {
  AttentionFit fit = flat_form();
  const Attention some = attention(false, 64, 4096, true);
  const double alone = attention_form_time(fit, even_device(), some).value();
  fit.back_to_back = 1.3;
  EXPECT_NEAR(attention_form_time(fit, even_device(), some).value() / alone, 1.3, 1e-12);
  EXPECT_NEAR(attention_form_time(fit, even_device(), some, Pace::kShortRun).value() / alone, 1,
              1e-12);
}

// A forward sample of a short run bends the form by its shape; a step pays its clock beside it.
TEST(AttentionForm, SamplesOfShortRunsKeepTheStepsClock) {
  Profile profile;
  AttentionVariant variant{"fast", flat_form(), {}, Provenance::kInterpolated};
  variant.samples = {{false, 1, 64, 64, 4096, 128, true, 0.4},
                     {true, 1, 64, 64, 4096, 128, true, 0.3}};
  variant.fit.back_to_back = 1.25;
  profile.attention_variants = {variant};
  profile.attention_kernel[framework_named("native")] = "fast";
  const KernelCosts costs(even_device(), profile, KernelStyle::kFused, framework_named("native"));
  const auto share = [&](bool backward) {
    const Attention some = attention(backward, 64, 4096, true);
    return flops_of(some) / costs.price(some).time.value() / 100e12;
  };
  EXPECT_NEAR(share(false), 0.4 / 1.25, 1e-12);
  EXPECT_NEAR(share(true), 0.3, 1e-12);  // measured in a step
  EXPECT_EQ(costs.price(attention(false, 64, 4096, true)).provenance, Provenance::kInterpolated);
  EXPECT_EQ(costs.price(attention(true, 64, 4096, true)).provenance, Provenance::kMeasured);
}

TEST(AttentionForm, AShortSequenceIsBoundByItsTraffic) {
  const Attention short_one = attention(false, 4096, 32, false);
  EXPECT_DOUBLE_EQ(attention_form_time(flat_form(), even_device(), short_one).value(),
                   traffic_of(short_one).value() / 1e12);
}

TEST(AttentionKernels, AreChosenByFramework) {
  Profile profile;
  profile.attention = flat_form();
  AttentionVariant fast{"cudnn", flat_form(), {}, Provenance::kInterpolated};
  fast.fit.forward_efficiency = 0.8;
  profile.attention_variants = {fast};
  profile.attention_kernel[framework_named("megatron")] = "cudnn";
  const Attention work = attention(false, 64, 8192, false);
  const auto time = [&](std::optional<Framework> framework) {
    return KernelCosts(even_device(), profile, KernelStyle::kFused, framework)
        .price(work)
        .time.value();
  };
  EXPECT_NEAR(time(std::nullopt) / time(framework_named("megatron")), 0.8 / 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(time(framework_named("fsdp")), time(std::nullopt));
}

TEST(AttentionKernels, AreChosenByNameWhereTheProfileNamesNoneForTheFramework) {
  Profile profile;
  profile.attention = flat_form();
  for (const char* name : {"fa1", "fa2"}) {
    profile.attention_variants.push_back({name, flat_form(), {}, Provenance::kInterpolated});
  }
  profile.attention_variants.back().fit.forward_efficiency = 0.8;
  const Attention work = attention(false, 64, 8192, false);
  const auto time = [&](const char* kernel) {
    return KernelCosts(even_device(), profile, KernelStyle::kFused, framework_named("fsdp"), kernel)
        .price(work)
        .time.value();
  };
  EXPECT_NEAR(time("fa1") / time("fa2"), 0.8 / 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(time("fa3"), time(""));                    // none of that name: the plain form
  profile.attention_kernel[framework_named("fsdp")] = "fa1";  // measured with it
  EXPECT_DOUBLE_EQ(time("fa2"), time("fa1"));
}

TEST(AttentionKernels, AMeasuredShapeCostsWhatWasMeasured) {
  Profile profile;
  AttentionVariant measured{"cudnn", flat_form(), {}, Provenance::kInterpolated};
  measured.samples = {{true, 2, 16, 4, 4096, 128, true, 0.33}};
  profile.attention_variants = {measured};
  profile.attention_kernel.fill("cudnn");
  const KernelCosts costs(even_device(), profile, KernelStyle::kFused, framework_named("native"));
  const Attention hit{true, 2, 16, 4, 4096, 4096, 128, true, DataType::kBf16};
  const KernelPrice price = costs.price(hit);
  EXPECT_NEAR(flops_of(hit) / price.time.value() / 100e12, 0.33, 1e-12);
  EXPECT_EQ(price.provenance, Provenance::kMeasured);
  Attention forward = hit;
  forward.backward = false;
  EXPECT_EQ(costs.price(forward).provenance, Provenance::kInterpolated);
}

}  // namespace
}  // namespace stepcast
