// SPDX-License-Identifier: Apache-2.0
#include "report/pipeline_strip.h"

#include <gtest/gtest.h>

#include "report/made_prediction.h"

namespace stepcast {
namespace {

TraceSlice pass_of(std::int32_t rank_class, double start, double end, Phase phase,
                   std::int32_t micro_batch) {
  return {rank_class, Stream::kCompute, "pass", Seconds(start), Seconds(end - start),
          phase,      micro_batch,      0,      false,          0};
}

// Ten seconds over 80 columns: eight a second.
Prediction drawn() {
  Prediction out = testing::made_prediction();
  out.slices = {
      pass_of(0, 0, 1, Phase::kForward, 0),        pass_of(0, 5, 7, Phase::kBackward, 0),
      pass_of(0, 9, 10, Phase::kOptimizer, -1),    pass_of(1, 1, 2, Phase::kForward, 12),
      pass_of(1, 2, 2.125, Phase::kRecompute, 12), pass_of(1, 2.125, 4, Phase::kBackward, 12)};
  return out;
}

TEST(PipelineStrip, HasALetterANumberAndTheLengthOfEachPass) {
  const Prediction prediction = drawn();
  const std::string text = pipeline_strips({{"here", &prediction}}, Form::kText);
  const std::string space(8, ' ');
  const std::string first = "stage 0  |F0======" + space + space + space + space +
                            "B0--------------" + space + space + "Ssssssss|";
  const std::string second = "stage 1  |" + space + "F12=====RB12------------" + space;
  EXPECT_EQ(text.find("here\n" + first), 0u) << text;
  EXPECT_NE(text.find("\n" + second), std::string::npos) << text;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 100u);
  }
}

// A pipeline of half the time takes half the width beside it.
TEST(PipelineStrip, DrawsSeveralOnOneAxis) {
  const Prediction longer = drawn();
  Prediction shorter = drawn();
  shorter.step_time = Seconds(5);
  shorter.slices = {pass_of(0, 0, 5, Phase::kForward, 0)};
  const std::string text = pipeline_strips({{"a", &longer}, {"b", &shorter}}, Form::kMarkdown);
  EXPECT_NE(text.find("b\nstage 0  |F0" + std::string(38, '=') + std::string(40, ' ') + "|"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("```"), 0u) << text;
}

}  // namespace
}  // namespace stepcast
