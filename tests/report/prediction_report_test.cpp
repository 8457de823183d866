// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/json_tree.h"
#include "report/breakdown.h"
#include "report/difference.h"
#include "report/figure_columns.h"
#include "report/made_prediction.h"
#include "report/prediction_json.h"
#include "report/prediction_table.h"

namespace stepcast {
namespace {

using stepcast::testing::made_prediction;
using stepcast::testing::made_scenario;

TEST(PredictionJson, HasEveryKeyOfTheFormat) {
  const SortedJson out =
      SortedJson::parse(prediction_json(made_scenario(), made_prediction()).text());
  EXPECT_EQ(out["stepcast"], 1);
  for (const char* key : {"fits",
                          "step_time_s",
                          "step_time_low_s",
                          "step_time_high_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "model_tflops_per_gpu",
                          "hardware_tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "mfu_causal",
                          "hfu_causal",
                          "bubble_fraction",
                          "time_s",
                          "provenance",
                          "peak_memory_bytes",
                          "peak_reserved_bytes",
                          "peak_device_bytes",
                          "device_memory_bytes",
                          "rank_classes",
                          "critical_path",
                          "resolved"}) {
    EXPECT_TRUE(out.contains(key)) << key;
  }
  for (const char* key : {"ranks", "count", "stage", "busy_s", "bubble_fraction",
                          "peak_memory_bytes", "peak_at_s", "memory_bytes", "framework_bytes"}) {
    EXPECT_TRUE(out["rank_classes"][0].contains(key)) << key;
  }
  EXPECT_EQ(out["rank_classes"][1]["ranks"], "2-3");
  EXPECT_EQ(out["rank_classes"][1]["count"], 2);
  EXPECT_EQ(out["time_s"]["exposed"]["dp"], 1);
  EXPECT_EQ(out["provenance"]["interpolated"], 0.25);
}

TEST(PredictionJson, HasEveryPartOfTheStep) {
  TimeParts parts;
  double value = 0;
  for (const TimePartRow& row : kTimeParts) parts.*row.time = Seconds(++value);
  const SortedJson out = SortedJson(time_object(parts));
  EXPECT_EQ(out,
            SortedJson::parse(R"({"compute":1,"recompute":2,"optimizer":3,"exposed":{"tp":4,"cp":5,
      "ep":6,"pp":7,"dp":8,"offload":9},"bubble":10,"other":11})"));
  EXPECT_EQ(parts.total().value(), 66);
}

// Tensor and context parallel ranks share a node here, the others do not.
TEST(PartText, NamesTheWireOfEveryTraffic) {
  Scenario scenario = made_scenario();
  scenario.cluster.spec.gpus_per_node = 4;
  scenario.layout.tp = 2;
  scenario.layout.cp = 2;
  scenario.layout.ep = 8;
  scenario.layout.dp = 4;
  std::string all;
  for (const TimePart& part : parts_of(TimeParts{})) {
    if (part.kind != TimeKind::kCompute) all += part_text(scenario, part) + "\n";
  }
  EXPECT_EQ(all,
            "recompute\noptimizer\nexposed tensor parallel (NVLink)\n"
            "exposed context parallel (NVLink)\nexposed expert parallel (network)\n"
            "exposed pipeline transfers (network)\nexposed data parallel (network)\n"
            "exposed offload\nbubble\nother (host, waiting)\n");
}

TEST(PredictionJson, LeavesOutWhatIsNotFinite) {
  Prediction prediction = made_prediction();
  prediction.mfu = std::nan("");
  prediction.hfu = HUGE_VAL;
  const std::string text = prediction_json(made_scenario(), prediction);
  const SortedJson out = SortedJson::parse(text);
  EXPECT_FALSE(out.contains("mfu"));
  EXPECT_FALSE(out.contains("hfu"));
  EXPECT_EQ(text.find("null"), std::string::npos);
}

// A long sequence: full attention counts twice what kernels execute.
TEST(PredictionTable, OfALongSequenceShowsTheCausalMfuAndSaysSo) {
  Prediction prediction = made_prediction();
  prediction.mfu = 0.9;
  prediction.hfu = HUGE_VAL;
  prediction.mfu_causal = 0.46;
  prediction.hfu_causal = 0.61;
  const auto said = [&] { return prediction_table(made_scenario(), prediction).text(); };
  EXPECT_NE(said().find("MFU 90.0 % (full attention)"), std::string::npos) << said();
  prediction.reads_causal = true;
  EXPECT_NE(
      said().find("MFU 46.0 %, HFU 61.0 % (causal attention; with full attention MFU 90.0 %)"),
      std::string::npos)
      << said();
  EXPECT_EQ(mfu_text(prediction), "46.0 % causal");
  for (const FigureCell& cell : figure_cells(kGrid, prediction)) {
    if (std::string_view(cell.figure.key) != "mfu") continue;
    EXPECT_EQ(cell.text(), "46.0 % causal");
    EXPECT_EQ(cell.exact(), "0.9");  // files have each under its own key
  }
}

TEST(Breakdown, OfTheStepAndTheWaterfallAddUpToTheStepTime) {
  const Prediction prediction = made_prediction();
  Seconds parts, steps;
  for (const TimePart& part : parts_of(prediction.time)) parts += part.time;
  for (const TimePart& step : steps_of(prediction.waterfall)) steps += step.time;
  EXPECT_EQ(parts, prediction.step_time);
  EXPECT_EQ(steps, prediction.step_time);
}

TEST(Breakdown, NamesTheLargestLossesFirstAndNotTheIdeal) {
  const auto losses = largest_losses(made_prediction().waterfall, Seconds(10), 2);
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].key, "gemm_inefficiency");  // 2 s, and before the bubble's 2 s
  EXPECT_EQ(losses[1].key, "bubble");
}

TEST(Breakdown, JudgesTheFitByTheFullestDevice) {
  Prediction prediction = made_prediction();
  EXPECT_EQ(verdict_of(prediction), Verdict::kFits);
  const auto of = [&](ByteCount low, ByteCount peak, ByteCount high) {  // of 1000
    prediction.peak_device_low = low;
    prediction.peak_device = peak;
    prediction.peak_device_high = high;
    return verdict_of(prediction);
  };
  EXPECT_EQ(of(800, 900, 1000), Verdict::kFits);
  EXPECT_EQ(of(850, 950, 1050), Verdict::kTight);
  EXPECT_EQ(of(950, 1050, 1150), Verdict::kTight);
  EXPECT_EQ(of(1001, 1100, 1200), Verdict::kDoesNotFit);
}

TEST(Breakdown, TakesTheFullestClassOfEachStage) {
  Prediction prediction = made_prediction();
  prediction.rank_classes.push_back(prediction.rank_classes[0]);
  prediction.rank_classes.back().reserved_bytes = 999;
  const auto classes = fullest_by_stage(prediction);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0]->reserved_bytes, 999);
  EXPECT_EQ(classes[1]->stage, 1);
}

TEST(PredictionTable, SaysVerdictStepTimeAndLosses) {
  const std::string text = prediction_table(made_scenario(), made_prediction());
  for (const char* part : {"fits", "10.00 s (9.000 s to 11.00 s", "MFU 40.0 %", "bubble 25.0 %",
                           "GEMM inefficiency 20.0 %", "measured 50.0 %"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(
      prediction_table(made_scenario(), made_prediction(), Form::kColored).text().find('\x1b'),
      std::string::npos);
}

TEST(PredictionCsv, HasAsManyCellsAsTitles) {
  const std::string text = prediction_csv(made_scenario(), made_prediction());
  const auto line = text.find('\n');
  ASSERT_NE(line, std::string::npos);
  const auto commas = [](std::string_view part) {
    return std::count(part.begin(), part.end(), ',');
  };
  EXPECT_EQ(commas(std::string_view(text).substr(0, line)),
            commas(std::string_view(text).substr(line)));
  EXPECT_NE(text.find("step_time_s"), std::string::npos);
}

TEST(PredictionMarkdown, HasTheTables) {
  const std::string text = prediction_table(made_scenario(), made_prediction(), Form::kMarkdown);
  EXPECT_NE(text.find("| compute | 6.000 | 60.0 % |"), std::string::npos) << text;
}

TEST(LayoutText, SaysHowMuchIsRecomputed) {
  Scenario scenario = made_scenario();
  const auto recompute = [&] {
    const std::string text = layout_text(scenario);
    return text.substr(text.rfind(" · "));
  };
  scenario.layout.recompute.mode = RecomputeMode::kFull;
  EXPECT_EQ(recompute(), " · full recompute");
  scenario.layout.recompute.layers = 1;
  EXPECT_EQ(recompute(), " · full recompute of 1 layer per chunk");
  scenario.layout.recompute.layers = 0;
  scenario.layout.recompute.every = 2;
  EXPECT_EQ(recompute(), " · full recompute of 1 in 2 layers");
}

// GPipe on one stage keeps the activations of all micro-batches: not the layout that 1F1B is there.
TEST(LayoutText, TellsSchedulesOfOneStageApart) {
  Scenario scenario = made_scenario();
  scenario.layout.pp = 1;
  EXPECT_EQ(layout_text(scenario).find("1f1b"), std::string::npos);
  scenario.layout.schedule = schedule_named("gpipe");
  EXPECT_NE(layout_text(scenario).find(" · gpipe"), std::string::npos) << layout_text(scenario);
}

}  // namespace
}  // namespace stepcast
