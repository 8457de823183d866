// SPDX-License-Identifier: Apache-2.0
// `plan --advise`: what it says in the cases that people come with.
#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

std::vector<std::string> advise_words(const std::string& model, const std::string& cluster,
                                      const std::string& batch,
                                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{"plan",  "--advise",       "--model", model,   "--cluster",
                               cluster, "--global-batch", batch,     "--seq", "2048"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

json rung_of(const json& advice, const std::string& id) {
  for (const json& rung : advice["rungs"]) {
    if (rung["rung"] == id) return rung;
  }
  ADD_FAILURE() << "no rung " << id;
  return {};
}

void expect_has(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

// States of 18 bytes a parameter do not fit on any GPU; sharded over all, with 16, they do. TP and
// PP spare the gathers.
TEST(AdviseCommand, SeventyBillionOn64A100) {
  const Outcome result =
      run(advise_words("llama-3.1-70b", "dgx-a100-80gx8", "512", {"--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["advice"]["rung"], "fsdp");
  EXPECT_EQ(out["advice"]["cluster"]["gpus"], 64);
  EXPECT_TRUE(out["advice"]["prediction"]["fits"]);
  const double parameters = 70.55e9;
  const auto needs = [&](const char* id) {
    const json rung = rung_of(out, id);
    EXPECT_EQ(rung["verdict"], "fails") << id;
    EXPECT_EQ(rung["constraint"], "memory") << id;
    EXPECT_GT(rung["value"], rung["limit"]) << id;
    return rung["value"].get<double>() / parameters;
  };
  EXPECT_NEAR(needs("ddp"), 18, 2);  // bytes a parameter, and activations
  EXPECT_NEAR(needs("zero-1"), 6 + 12.0 / 64, 1);
  EXPECT_GT(needs("zero-2"), 2 + 14.0 / 64);
  EXPECT_GT(rung_of(out, "3d")["speed_against_advice"], 1.1);
  expect_has(out["advice"]["because"],
             {"The first rung that fits", "TP x PP x DP", "% faster: worth the climb"});
  expect_has(rung_of(out, "ddp")["reason"],
             {"every GPU holds a whole copy", "18.0 bytes a parameter", "full recompute"});
}

TEST(AdviseCommand, ThirtyBillionOn32A100) {
  const Outcome result = run(advise_words("llama-30b", "dgx-a100-80gx4", "512"));
  ASSERT_EQ(result.code, 0) << result.error;
  expect_has(result.out,
             {"Advice: FSDP (ZeRO-3) over 32 GPUs", "tp 1 · pp 1 · dp 32 · zero 3", "DDP: needs 5",
              "ZeRO-1: needs 2", "optimizer states are sharded", "The first rung that fits."});
}

// 13 B parameters of 16 to 18 bytes.
TEST(AdviseCommand, ThirteenBillionOnOneH100) {
  const Outcome result = run(advise_words("llama-2-13b", "dgx-h100", "128", {"--gpus", "1"}));
  EXPECT_EQ(result.code, 3) << result.error;
  expect_has(result.out, {"Advice: none", "No rung fits on 1 GPU: the least needs 3.0",
                          "times the memory", "bytes a parameter", "What would change that",
                          "if this is fine-tuning, LoRA on one GPU (training.mode lora) fits",
                          "if this is fine-tuning, QLoRA on one GPU (training.mode qlora) fits",
                          "on 4 GPUs (a node has 8) meets the demands"});
}

TEST(AdviseCommand, ThirteenBillionOnEightH100) {
  const Outcome result =
      run(advise_words("llama-2-13b", "dgx-h100x1", "128", {"--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["advice"]["rung"], "zero-2");
  EXPECT_EQ(out["advice"]["framework"], "deepspeed");
  // 2 + 4 + 12/8 bytes a parameter are still too many.
  EXPECT_GT(rung_of(out, "zero-1")["value"].get<double>(), 7.5 * 13.0e9);
  EXPECT_EQ(rung_of(out, "one-gpu")["gpus"], 1);
}

TEST(AdviseCommand, LoraOfSevenBillionOnOne4090) {
  const Outcome result = run(advise_words("llama-2-7b", "pcie-4090-8", "16",
                                          {"--gpus", "1", "--set", "training.mode=lora"}));
  ASSERT_EQ(result.code, 0) << result.error;
  expect_has(result.out, {"lora of rank 16", "Advice: LoRA on one GPU", "of 23.99 GiB",
                          "QLoRA on one GPU  fits"});
}

// An advice promises what `predict` says of its layout.
TEST(AdviseCommand, TheAdviceIsThePredictionOfItsLayout) {
  const json advice =
      run(advise_words("gpt3-1.3b", "dgx-a100-80gx1", "16", {"--format", "json"})).json()["advice"];
  const std::string framework = advice["framework"];
  const Outcome result = run({"predict", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gx1",
                              "--seq", "2048", "--global-batch", "16", "--framework", framework,
                              "--set", "layout=" + advice["layout"].dump(), "--format", "json"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.json()["step_time_s"], advice["prediction"]["step_time_s"]);
  EXPECT_EQ(result.json()["peak_device_bytes"], advice["prediction"]["peak_device_bytes"]);
}

TEST(AdviseCommand, OneGpuIsEnoughForWhoeverSaysSo) {
  const Outcome result =
      run(advise_words("gpt3-1.3b", "dgx-h100x1", "64",
                       {"--tokens", "1B", "--deadline", "10d", "--budget", "5k", "--price", "3"}));
  ASSERT_EQ(result.code, 0) << result.error;
  expect_has(result.out, {"Advice: one GPU", "The first rung that meets every demand: ",
                          "of 10.0 days (chance above 99 %)", "The other 7 GPUs are not needed",
                          "over 8 GPUs would be", "times as fast"});
}

TEST(AdviseCommand, SaysByHowMuchADemandIsMissed) {
  const Outcome result =
      run(advise_words("gpt3-1.3b", "dgx-h100x1", "64", {"--min-tokens-per-s", "100M"}));
  EXPECT_EQ(result.code, 0) << result.error;
  expect_has(result.out, {"too slow", "No rung meets every demand. The fastest that fits, ",
                          "tokens/s where 100,000,000 are demanded", "What would change that"});
}

TEST(AdviseCommand, PrintsTheSameForAnyNumberOfThreads) {
  for (const char* format : {"table", "json", "md"}) {
    const auto of = [&](const char* threads) {
      return run(advise_words("gpt3-1.3b", "dgx-a100-80gx1", "16",
                              {"--threads", threads, "--format", format}));
    };
    const Outcome one = of("1");
    EXPECT_EQ(one.code, 0) << one.error;
    EXPECT_EQ(one.out, of("3").out) << format;
  }
}

// A layout needs one amount of memory where none fits, whoever asks.
TEST(AdviseCommand, SaysOfWhatDoesNotFitWhatPlanSays) {
  const std::vector<std::string> asked = {"--gpus", "1", "--set", "training.mode=lora"};
  std::vector<std::string> words = advise_words("llama-3.1-70b", "dgx-h100", "16", asked);
  words.insert(words.end(), {"--format", "json"});
  const json rung = rung_of(run(words).json(), "lora");
  words = advise_words("llama-3.1-70b", "dgx-h100", "16", asked);
  std::erase(words, "--advise");
  const Outcome plan = run(words);
  char least[64];
  std::snprintf(least, sizeof least, "The least that one needs is %.2f GiB",
                rung["value"].get<double>() / (1 << 30));
  EXPECT_TRUE(has(plan.out, least)) << least << plan.out;
  // 70.6 billion parameters of two bytes, once: they are not gathered beside themselves.
  EXPECT_LT(rung["value"].get<double>(), 1.3 * 2 * 70.55e9);
}

TEST(AdviseCommand, RefusesWhatItCannotAnswer) {
  const auto small = [](const std::vector<std::string>& more) {
    return run(advise_words("gpt3-1.3b", "dgx-h100x1", "64", more));
  };
  const Outcome endless = small({"--deadline", "3d"});
  expect_refused(endless);
  expect_has(endless.error, {"run.tokens", "a deadline"});
  expect_refused(small({"--format", "csv"}));
  const Outcome impossible = small({"--pp", "5"});
  expect_refused(impossible);
  expect_has(impossible.error, {"pp"});
  EXPECT_EQ(small({"--why-not", "tp=2"}).code, 2);
  EXPECT_EQ(run({"plan", "--model", "gpt3-1.3b", "--cluster", "dgx-h100x1", "--global-batch", "64",
                 "--min-tokens-per-s", "1k"})
                .code,
            2);
}

}  // namespace
}  // namespace stepcast::testing
