// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"
#include "core/each.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// The words of a command with a small space, and more words behind them.
std::vector<std::string> plan_words(const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{"plan",  "--model", "gpt3-1.3b",      "--cluster", "dgx-a100-80gx1",
                               "--seq", "1024",    "--global-batch", "16",        "--recompute",
                               "none"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(PlanCommand, RanksWhatItReplayed) {
  const Outcome result = run(plan_words({"--prove", "--format", "json", "--top", "4"}));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  const json out = result.json();
  EXPECT_EQ(out["stepcast"], 1);
  EXPECT_TRUE(out["proven"]);
  ASSERT_EQ(out["plans"].size(), 4u);
  double before = 0;
  int place = 0;
  for (const json& plan : out["plans"]) {
    EXPECT_EQ(plan["place"], ++place);
    const double step = plan["prediction"]["step_time_s"];
    EXPECT_GE(step, before);
    EXPECT_LE(plan["bound_s"].get<double>(), step);
    EXPECT_TRUE(plan["prediction"]["fits"]);
    EXPECT_FALSE(plan["reason"].get<std::string>().empty());
    EXPECT_EQ(plan["layout"]["recompute"]["mode"], "none");
    before = step;
  }
  const json& pruned = out["pruned"];
  double sum = out["replayed"];
  for (const char* why : {"by_rules_or_equal", "by_memory_bound", "by_time_bound"}) {
    EXPECT_GE(pruned[why], 0) << why;
    sum += pruned[why].get<double>();
  }
  EXPECT_DOUBLE_EQ(sum, out["searched"].get<double>());
  EXPECT_LE(out["replayed"], out["bounded"]["layouts"]);
}

// The forecast of one of its layouts.
std::vector<std::string> predict_planned(const json& plan) {
  const std::string framework = plan["framework"];
  return {"predict",
          "--model",
          "gpt3-1.3b",
          "--cluster",
          "dgx-a100-80gx1",
          "--seq",
          "1024",
          "--global-batch",
          "16",
          "--framework",
          framework,
          "--set",
          "layout=" + plan["layout"].dump(),
          "--format",
          "json"};
}

// A plan promises what `predict` says of its layout.
TEST(PlanCommand, FirstPlaceIsThePredictionOfItsLayout) {
  const json plan = run(plan_words({"--format", "json", "--top", "1"})).json()["plans"][0];
  const Outcome result = run(predict_planned(plan));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.json()["step_time_s"], plan["prediction"]["step_time_s"]);
  EXPECT_EQ(result.json()["peak_device_bytes"], plan["prediction"]["peak_device_bytes"]);
}

TEST(PlanCommand, PrintsTheSameForAnyNumberOfThreads) {
  for (const char* format : {"table", "json", "csv", "md"}) {
    const auto with = [&](const char* threads) {
      return run(plan_words({"--threads", threads, "--format", format, "--front", "3"}));
    };
    const Outcome one = with("1");
    EXPECT_EQ(one.code, 0) << one.error;
    EXPECT_FALSE(one.out.empty());
    for (const char* threads : {"2", "4"}) EXPECT_EQ(one.out, with(threads).out) << format;
  }
}

TEST(PlanCommand, SaysWhyNot) {
  const Outcome result = run(plan_words({"--why-not", "tp=3", "--why-not", "tp=8,pp=1"}));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(has(result.out, "tp=3: refused: layout.tp: 3 does not divide")) << result.out;
  EXPECT_TRUE(has(result.out, "tp=8,pp=1: ")) << result.out;
  EXPECT_TRUE(has(result.out, "against the first")) << result.out;
}

// The ranks of tp 8 leave dp 1 where tp 2 left 4; passes of chunks need a pipeline, and sequence
// parallelism ranks that share tensors. No key makes 3 divide the 32 heads.
TEST(PlanCommand, WhatDependsOnTheKeyInQuestionChangesWithIt) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast": 1, "model": "llama-3.1-8b",
      "cluster": "dgx-h100x2", "training": {"global_batch": 128, "sequence_length": 4096},
      "layout": {"tp": 2, "pp": 2, "dp": 4, "micro_batch": 4, "schedule": "interleaved",
                 "virtual_stages": 4, "sequence_parallel": true, "overlap": {"tp": true}}})");
  const auto answer = [&](const std::string& asked) {
    return run({"plan", folder / "s.json", "--why-not", asked, "--format", "json", "--quiet"})
        .json()["why_not"][0];
  };
  for (const char* asked : {"tp=8", "tp=1", "tp=16", "pp=1", "pp=16", "cp=2", "dp=8"}) {
    const json one = answer(asked);
    ASSERT_TRUE(one.contains("layout")) << one;
    EXPECT_FALSE(one["changed"].empty()) << one;
    std::string words = asked;
    words.replace(words.find('='), 1, " ");
    EXPECT_TRUE(has(one["layout"], words)) << one;
  }
  EXPECT_EQ(answer("tp=8")["changed"], json({"dp"}));
  const json never = answer("tp=3");
  EXPECT_FALSE(never.contains("layout")) << never;
  EXPECT_TRUE(has(never["rules"].dump(), "layout.tp")) << never;
}

TEST(PlanCommand, SaysThatWhatIsAskedAboutIsTheFirstPlace) {
  const json layout =
      run(plan_words({"--format", "json", "--top", "1"})).json()["plans"][0]["layout"];
  const Outcome result =
      run(plan_words({"--why-not", "tp=" + layout["tp"].dump() + ",pp=" + layout["pp"].dump()}));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(has(result.out, "these include the first place: ")) << result.out;
  EXPECT_FALSE(has(result.out, "against the first")) << result.out;
}

TEST(PlanCommand, RefusesToAskAboutWhatDoesNotExist) {
  const Outcome key = run(plan_words({"--why-not", "foo=3"}));
  expect_refused(key);
  EXPECT_TRUE(has(key.error, "--why-not (layout.foo): is not a known key")) << key.error;
  const Outcome value = run(plan_words({"--why-not", "recompute=fulll"}));
  expect_refused(value);
  EXPECT_TRUE(has(value.error, "did you mean 'full'?")) << value.error;
}

// The keys are open in the search and stated in the question, so the layouts belong to two spaces.
TEST(PlanCommand, SaysWhyNotOfMoreKeysThanTheSearchStates) {
  for (const char* format : {"table", "json"}) {
    const Outcome result =
        run({"plan", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gx1", "--seq", "1024",
             "--global-batch", "16", "--replays", "32", "--format", format, "--why-not",
             "tp=4,pp=2,micro_batch=1,schedule=1f1b"});
    ASSERT_EQ(result.code, 0) << result.error;
    EXPECT_TRUE(has(result.out, "tp 4 · pp 2 · ")) << result.out;
  }
}

TEST(PlanCommand, NamesTheRulesThatRefuseEveryLayout) {
  const Outcome three = run(plan_words({"--fix", "pp=3"}));
  expect_refused(three);
  EXPECT_TRUE(has(three.error, "layout.pp")) << three.error;
  const Outcome wide = run(plan_words({"--fix", "tp=16"}));
  expect_refused(wide);
  EXPECT_TRUE(has(wide.error, "layout.tp")) << wide.error;
  const Outcome batch = run({"plan", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gx1", "--seq",
                             "1024", "--global-batch", "4", "--fix", "tp=1,pp=1"});
  expect_refused(batch);
  EXPECT_TRUE(has(batch.error, "global_batch")) << batch.error;
}

// A GPU of this kind does 989 TFLOP/s in bf16, so that the products of 512 sequences take 512 of
// them at least 2.2 s. No search that is cut short knows more of what it did not look at.
TEST(PlanCommand, SaysHowFarFromTheBestItMayBeWhereItWasCutShort) {
  const std::vector<std::string> words{"plan",        "--model",        "gpt3-175b", "--cluster",
                                       "dgx-h100x64", "--global-batch", "512",       "--seq",
                                       "2048",        "--replays",      "32",        "--time-limit",
                                       "0.001",       "--format",       "json"};
  const json out = run(words).json();
  EXPECT_FALSE(out["proven"].get<bool>());
  ASSERT_EQ(out["plans"].empty(), !out.contains("gap"));
  if (out["plans"].empty()) return;  // on a machine that found none within half a second
  const double best = out["plans"][0]["prediction"]["step_time_s"];
  const double products = 6.0 * 174.6e9 * 512 * 2048;  // parameters and tokens
  const double bound = out["bound_s"];
  EXPECT_NEAR(bound, products / 512 / 989.4e12, 0.03 * bound);
  EXPECT_NEAR(out["gap"].get<double>(), best / bound - 1, 1e-6);
}

TEST(PlanCommand, FixedKeysAreNotSearched) {
  const json out = run(plan_words({"--fix", "tp=2,pp=2", "--fix", "layout.zero=0", "--format",
                                   "json", "--top", "3"}))
                       .json();
  ASSERT_FALSE(out["plans"].empty());
  for (const json& plan : out["plans"]) {
    EXPECT_EQ(plan["layout"]["tp"], 2);
    EXPECT_EQ(plan["layout"]["pp"], 2);
    EXPECT_EQ(plan["layout"]["zero"], 0);
  }
}

TEST(PlanCommand, LimitsGpusAndMemory) {
  const json out =
      run(plan_words({"--max-gpus", "4", "--memory-margin", "0.7", "--format", "json"})).json();
  ASSERT_FALSE(out["plans"].empty());
  for (const json& plan : out["plans"]) {
    EXPECT_EQ(plan["cluster"]["gpus"], 4);
    const json& prediction = plan["prediction"];
    EXPECT_LE(prediction["peak_device_bytes"].get<double>(),
              0.3 * prediction["device_memory_bytes"].get<double>());
  }
}

TEST(PlanCommand, EndsWithThreeWhenNothingFits) {
  const Outcome result = run({"plan", "--model", "gpt3-175b", "--cluster", "dgx-a100-40gx1",
                              "--global-batch", "8", "--recompute", "full", "--seq", "2048"});
  EXPECT_EQ(result.code, 3) << result.error;
  EXPECT_TRUE(has(result.out, "No layout fits in")) << result.out;
}

TEST(PlanCommand, RefusesAKeyThatIsFixedTwice) {
  for (const std::vector<std::string>& twice :
       {std::vector<std::string>{"--fix", "tp=2", "--fix", "tp=4"},
        {"--fix", "tp=2,layout.tp=4"},
        {"--tp", "2", "--fix", "tp=4"},
        {"--set", "layout.tp=2", "--fix", "tp=4"}}) {
    const Outcome result = run(plan_words(twice));
    expect_refused(result);
    EXPECT_TRUE(has(result.error, "layout.tp has two values, 2 and 4")) << result.error;
  }
  expect_refused(run(plan_words({"--memory-margin", "0.1", "--memory-margin", "0.2"})));
  EXPECT_EQ(run(plan_words({"--tp", "2", "--fix", "tp=2", "--replays", "1"})).code, 0);
}

// The file is sound by itself: nothing in it needs a change.
TEST(PlanCommand, NamesTheFlagThatFixesAKeyAndNotTheFile) {
  const Folder folder;
  const std::string file = folder / "scenario.json";
  write_file(file, R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x1",
                       "training": {"global_batch": 8}})");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--fix", "shedule=gpipe"}, "error: --fix layout.shedule: is not a known key"},
      {{"--fix", "zero=1,tp=5"}, "error: --fix layout.tp: 5 does not divide 12 heads"},
      {{"--clusters", "absent", "--gpus", "8"}, "error: --clusters (absent): there is no cluster"},
  };
  for (const auto& [words, error] : cases) {
    std::vector<std::string> all{"plan", file};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome result = run(all);
    expect_refused(result);
    EXPECT_EQ(result.error.rfind(error, 0), 0u) << result.error;
  }
}

// The figures of a place are those of `predict` with its layout.
TEST(PlanCommand, SaysWhatTheRunOfEachPlaceTakes) {
  const std::vector<std::string> run_flags{"--tokens", "1B",   "--deadline", "9d",
                                           "--budget", "500k", "--price",    "2.5"};
  std::vector<std::string> words = plan_words({"--format", "json", "--top", "2"});
  words.insert(words.end(), run_flags.begin(), run_flags.end());
  const Outcome result = run(words);
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["objective"], "step_time");
  ASSERT_EQ(out["plans"].size(), 2u);
  for (const json& plan : out["plans"]) {
    const json& layout = plan["layout"];
    const std::string framework = plan["framework"];
    std::vector<std::string> one{"predict",
                                 "--model",
                                 "gpt3-1.3b",
                                 "--cluster",
                                 "dgx-a100-80gx1",
                                 "--seq",
                                 "1024",
                                 "--global-batch",
                                 "16",
                                 "--framework",
                                 framework,
                                 "--set",
                                 "layout=" + layout.dump(),
                                 "--format",
                                 "json"};
    one.insert(one.end(), run_flags.begin(), run_flags.end());
    EXPECT_EQ(run(one).json()["economics"], plan["economics"]);
  }
  const Outcome table = run(plan_words({"--tokens", "1B", "--deadline", "9d", "--top", "2"}));
  EXPECT_TRUE(has(table.out, "meets the deadline of 9.00 days")) << table.out;
}

TEST(PlanCommand, RanksByCostWhereThereIsAPrice) {
  const Outcome result = run(plan_words({"--objective", "cost", "--prove", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["objective"], "cost");
  EXPECT_TRUE(out["proven"]);
  double before = 0;
  for (const json& plan : out["plans"]) {
    const double cost = plan["economics"]["usd_per_million_tokens"];
    EXPECT_GE(cost * 1.01, before);  // near ties go by simplicity
    before = cost;
  }
  const Outcome none = run({"plan", "--model", "gpt3-1.3b", "--cluster", "gh200-alpsx1", "--seq",
                            "1024", "--global-batch", "16", "--objective", "cost"});
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "gh200-alps")) << none.error;
  EXPECT_TRUE(has(none.error, "--price")) << none.error;
}

// 6 x 8.03e9 x 1e12 FLOPs make 0.292 C^0.3271 = 7.7 M tokens, 1873 sequences of 4096.
TEST(PlanCommand, ProposesABatchWhereTheTokensAreKnown) {
  const std::vector<std::string> asked = {
      "plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x1", "--replays",
      "4",    "--seq",   "4096",         "--format",  "json"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = asked;
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const Outcome proposed = with({"--tokens", "1T"});
  ASSERT_EQ(proposed.code, 0) << proposed.error;
  EXPECT_TRUE(has(proposed.error, "no --global-batch: 2048 sequences of 4096 tokens"))
      << proposed.error;
  const Outcome stated = with({"--tokens", "1T", "--global-batch", "2048"});
  EXPECT_EQ(proposed.json()["plans"], stated.json()["plans"]);
  EXPECT_FALSE(has(stated.error, "no --global-batch")) << stated.error;
  expect_refused(with({}));
}

// Whatever is trained, the first place starts.
TEST(PlanCommand, NamesTheExportThatLaunchesTheFirstPlace) {
  const Folder folder;
  for (const char* mode : each_of(std::vector{"pretrain", "lora", "qlora"})) {
    const std::string plan = folder / (std::string(mode) + ".json");
    const Outcome planned =
        run({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x1", "--global-batch", "64",
             "--seq", "4096", "--replays", "32", "--set", std::string("training.mode=") + mode,
             "--format", "json", "-o", plan});
    ASSERT_EQ(planned.code, 0) << planned.error;
    const auto out = nlohmann::json::parse(read_file(plan));
    ASSERT_TRUE(out.contains("export")) << mode;
    const Outcome exported = run({"export", plan, "--place", "1", "--to",
                                  out["export"].get<std::string>(), "-o", folder / mode});
    EXPECT_EQ(exported.code, 0) << mode << exported.error;
  }
}

TEST(PlanCommand, RefusesALimitOfNoTokens) {
  const Outcome result = run(plan_words({"--deadline", "30d"}));
  expect_refused(result);
  EXPECT_TRUE(has(result.error, "--tokens")) << result.error;
}

TEST(PlanCommand, RefusesWhatItCannotRead) {
  expect_refused(run(plan_words({"--fix", "tp"})));
  expect_refused(run(plan_words({"--fix", "tpp=2"})));
  expect_refused(run(plan_words({"--why-not", "8"})));
  const Outcome deadline = run(plan_words({"--tokens", "2T", "--deadline", "30"}));
  expect_refused(deadline);
  EXPECT_TRUE(has(deadline.error, "\"30d\"")) << deadline.error;
  expect_refused(run(plan_words({"--memory-margin", "2"})));
  const Outcome objective = run(plan_words({"--set", "plan.objective=beauty"}));
  expect_refused(objective);
  EXPECT_TRUE(has(objective.error, "plan.objective")) << objective.error;
  const Outcome near = run(plan_words({"--fix", "tpp=2"}));
  EXPECT_TRUE(has(near.error, "layout.tpp")) << near.error;
}

}  // namespace
}  // namespace stepcast::testing
