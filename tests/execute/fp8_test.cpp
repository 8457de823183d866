// SPDX-License-Identifier: Apache-2.0
// Programs in fp8 on the processor, which emulates it: copies have 8 bits, and their products are
// those of the numbers that they stand for.
#include <gtest/gtest.h>

#include <string>

#include "forecast_peaks.h"
#include "fp8_case.h"
#include "program/executable.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::expect_forecast_peaks;
using testing::Fp8Case;
using testing::train;
using testing::TrainedRun;
using testing::VariantCase;

constexpr int kFp8Steps = 3;

struct Fp8Layout {
  const char* name;
  const char* recipe;
  void (*change)(VariantCase& c);
};

class InFp8 : public ::testing::TestWithParam<Fp8Layout> {};

// Scales are powers of two, so that parts of a tensor are rounded as the whole one, and only sums
// in fp32 have another order. Against fp32 the parameters are a hundred times as far.
TEST_P(InFp8, TrainsLikeOneRankInTheMemoryOfTheForecast) {
  Fp8Case c{GetParam().recipe};
  const Scenario one = testing::fp8_scenario(c), wide = testing::fp8_scenario({""});
  GetParam().change(c.layout);
  const Scenario many = testing::fp8_scenario(c);
  EXPECT_TRUE(check_executable(many).empty());
  const TrainedRun parallel = train(many, kFp8Steps);
  const TrainedRun& reference = testing::trained_once(one, kFp8Steps);
  const TrainedRun& exact = testing::trained_once(wide, kFp8Steps);
  for (std::size_t s = 0; s < kFp8Steps; ++s) {
    EXPECT_NEAR(parallel.loss[s] / reference.loss[s], 1, 1e-5) << "step " << s;
    EXPECT_NEAR(parallel.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
    EXPECT_NEAR(reference.loss[s] / exact.loss[s], 1, 1e-3) << "step " << s;
  }
  EXPECT_LT(parallel.model.relative_error(reference.model), 1e-5);
  EXPECT_GT(reference.model.relative_error(exact.model), 2e-4);
  expect_forecast_peaks(one, reference);
  expect_forecast_peaks(many, parallel);
}

void dp2_zero3(VariantCase& c) { c.dp = 2, c.zero = 3; }
void fsdp(VariantCase& c) { c.dp = 2, c.zero = 3, c.framework = "fsdp"; }
void tp2(VariantCase& c) { c.tp = 2; }
void tp2_sequence(VariantCase& c) {
  c.tp = 2;
  c.layout = R"(,"sequence_parallel":true)";
}
void full(VariantCase& c) { c.dp = 2, c.layout = R"(,"recompute":"full")"; }
void megatron(VariantCase& c) {
  tp2_sequence(c);
  c.dp = 2, c.pp = 2, c.zero = 1;
  c.framework = "megatron";
}
void ring2(VariantCase& c) { c.cp = 2; }
INSTANTIATE_TEST_SUITE_P(Layouts, InFp8,
                         ::testing::Values(Fp8Layout{"Full", "current", full},
                                           Fp8Layout{"Tp2", "current", tp2},
                                           Fp8Layout{"Tp2Sequence", "current", tp2_sequence},
                                           Fp8Layout{"Megatron", "current", megatron},
                                           Fp8Layout{"Ring2", "current", ring2},
                                           Fp8Layout{"Dp2Zero3", "current", dp2_zero3},
                                           Fp8Layout{"Fsdp", "current", fsdp},
                                           Fp8Layout{"FullDelayed", "delayed", full},
                                           Fp8Layout{"Tp2SequenceDelayed", "delayed", tp2_sequence},
                                           Fp8Layout{"MegatronDelayed", "delayed", megatron},
                                           Fp8Layout{"Dp2Zero3Delayed", "delayed", dp2_zero3}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace stepcast
