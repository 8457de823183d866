// SPDX-License-Identifier: Apache-2.0
// --require: a forecast as a gate.
#include <fmt/format.h>

#include "cli/program.h"

namespace stepcast::testing {
namespace {

std::vector<std::string> with_required(std::vector<std::string> words, const std::string& text) {
  words.insert(words.end(), {"--require", text});
  return words;
}

const std::vector<std::string> kPredict = {
    "predict", "--model", "gpt2", "--cluster", "dgx-h100", "--seq",      "1024", "--global-batch",
    "8",       "--pp",    "2",    "--tokens",  "1B",       "--deadline", "30d",  "--budget",
    "1M",      "--price", "2",    "--format",  "json"};

// The limits lie just beside the figures that the forecast itself prints.
TEST(Require, KeepsWhatTheForecastSaysAndNothingBeyondIt) {
  const Outcome plain = run(kPredict);
  ASSERT_EQ(plain.code, 0) << plain.error;
  const auto forecast = plain.json();
  const auto& length = forecast["economics"];
  const std::vector<std::pair<std::string, double>> figures = {
      {"mfu", forecast["mfu"]},
      {"hfu", forecast["hfu"]},
      {"bubble", forecast["bubble_fraction"]},
      {"tokens_per_s", forecast["tokens_per_s"]},
      {"tokens_per_s_per_gpu", forecast["tokens_per_s_per_gpu"]},
      {"tflops", forecast["model_tflops_per_gpu"]},
      {"goodput", length["goodput"]},
      {"days", length["wall_time_s"].get<double>() / 86400},
      {"cost", length["cost_usd"]},
  };
  ASSERT_GT(forecast["bubble_fraction"], 0.01);
  int judged = 0;
  for (const auto& [name, value] : figures) {
    for (const double factor : {0.99, 1.01}) {
      const double limit = value * factor;
      const bool above = value > limit;
      for (const char* relation : {">=", "<="}) {
        const bool kept = above == (relation[0] == '>');
        const std::string text = fmt::format("{}{}{:.12f}", name, relation, limit);
        const Outcome out = run(with_required(kPredict, text));
        EXPECT_EQ(out.code, kept ? 0 : 6) << text << out.error;
        EXPECT_EQ(out.out, plain.out);  // the forecast is printed all the same
        EXPECT_EQ(out.error.empty(), kept) << out.error;
        ++judged;
      }
    }
  }
  EXPECT_EQ(judged, 36);
}

TEST(Require, TakesUnitsAndTruths) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"fits", 0},          {"deadline", 0},          {"budget", 0},
      {"step_time<=1h", 0}, {"step_time >= 1 h", 6},  {"memory<=79GiB", 0},
      {"memory<=1 MiB", 6}, {"mfu>=99%", 6},          {"cost<=$1M", 0},
      {"cost<=0.01", 6},    {"fits, mfu >= 0.99", 6}, {"days<=30,tokens_per_s>=1k", 0},
  };
  for (const auto& [text, code] : cases) {
    EXPECT_EQ(run(with_required(kPredict, text)).code, code) << text;
  }
}

TEST(Require, SaysEachRequirementThatIsNotKept) {
  const Outcome out = run(with_required(kPredict, "mfu>=99%, fits, memory<=1MiB"));
  EXPECT_EQ(out.code, 6);
  EXPECT_TRUE(has(out.error, "required: mfu>=99%, and it is ")) << out.error;
  EXPECT_TRUE(has(out.error, "required: memory<=1MiB, and it is ")) << out.error;
  EXPECT_FALSE(has(out.error, "fits")) << out.error;
}

TEST(Require, RefusesWhatIsNoRequirementBeforeAnyWork) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has no value (--require LIST)"},
      {"fits,", "a requirement is empty"},
      {"mfo>=1", "'mfo' is no figure of a forecast (did you mean 'mfu'?)"},
      {"mfu", "mfu has no limit (mfu>=X or mfu<=X)"},
      {"mfu>0.4", "'mfu>0.4' has neither >= nor <="},
      {"mfu>=x", "'x' is no fraction (write it like 0.4 or 40%)"},
      {"step_time<=3", "'3' has no unit"},
      {"fits>=1", "'fits>=1' gives fits a limit (fits alone)"},
  };
  for (const auto& [text, error] : cases) {
    const Outcome out = run(with_required(kPredict, text));
    expect_refused(out);
    EXPECT_TRUE(has(out.error, "error: --require: ")) << out.error;
    EXPECT_TRUE(has(out.error, error)) << out.error;
  }
  const Outcome unknown = run({"predict", "--model", "gpt2", "--cluster", "dgx-h100",
                               "--global-batch", "8", "--require", "days<=30"});
  expect_refused(unknown);
  EXPECT_TRUE(has(unknown.error, "days is not known (--tokens says how long the run is)"))
      << unknown.error;
}

TEST(Require, IsAskedOfTheBestPointAndOfTheFirstPlace) {
  const std::vector<std::string> scenario = {"--model",  "gpt2", "--cluster",      "dgx-h100",
                                             "--seq",    "1024", "--global-batch", "16",
                                             "--tokens", "1B",   "--price",        "2"};
  const std::vector<std::vector<std::string>> commands = {
      {"compare", "--vary", "layout.micro_batch=1,2"}, {"plan", "--top", "2"}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.end(), scenario.begin(), scenario.end());
    if (words.front() == "compare") words.resize(words.size() - 4);  // takes no run
    EXPECT_EQ(run(with_required(words, "fits")).code, 0) << words.front();
    EXPECT_EQ(run(with_required(words, "fits, mfu>=0.999")).code, 6) << words.front();
  }
  const Outcome offers =
      run({"plan", "--model", "gpt2", "--clusters", "dgx-h100,dgx-a100-80g", "--gpus", "2", "--seq",
           "1024", "--global-batch", "16", "--tokens", "1B", "--require", "days<=0.0001"});
  EXPECT_EQ(offers.code, 6) << offers.error;
}

}  // namespace
}  // namespace stepcast::testing
