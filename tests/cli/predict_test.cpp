// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

double sum_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  double sum = 0;
  for (const json& part : value) sum += sum_of(part);
  return sum;
}

json forecast(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome result = run(predict_words(words));
  EXPECT_EQ(result.code, 0) << result.error;
  return result.json();
}

TEST(PredictCommand, PrintsATableWithoutAFile) {
  const Outcome result = run(predict_words());
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  for (const char* part : {"llama-3.1-8b", "step time", "MFU", "parameters", "ideal FLOP time"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);  // no terminal, no colour
}

TEST(PredictCommand, TimesMemoryAndSharesAddUp) {
  const json out = forecast();
  const double step = out["step_time_s"];
  ASSERT_GT(step, 0);
  EXPECT_NEAR(sum_of(out["time_s"]), step, 1e-9 * step);
  EXPECT_NEAR(sum_of(out["waterfall_s"]), step, 1e-6 * step);
  EXPECT_NEAR(sum_of(out["provenance"]), 1, 1e-9);
  EXPECT_LE(out["step_time_low_s"], out["step_time_s"]);
  EXPECT_GE(out["step_time_high_s"], out["step_time_s"]);
  EXPECT_EQ(out["fits"], out["peak_device_bytes"] <= out["device_memory_bytes"]);
  std::int64_t ranks = 0, peak = 0;
  for (const json& rank_class : out["rank_classes"]) {
    EXPECT_EQ(sum_of(rank_class["memory_bytes"]), rank_class["peak_memory_bytes"]);
    ranks += rank_class["count"].get<std::int64_t>();
    peak = std::max(peak, rank_class["peak_memory_bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(ranks, 16);
  EXPECT_EQ(out["peak_memory_bytes"], peak);
  // 64 x 4096 tokens per step on 16 GPUs.
  EXPECT_NEAR(out["tokens_per_s_per_gpu"].get<double>(), 64 * 4096 / step / 16, 1e-6);
}

TEST(PredictCommand, GivesTheSameBytesAgain) {
  const Outcome first = run(predict_words({"--format", "json"}));
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(run(predict_words({"--format", "json"})).out, first.out);
}

// The seed draws the run that an explanation ends with, and nothing else.
TEST(PredictCommand, DrawsAnotherRunWithAnotherSeed) {
  const auto explained = [](const char* seed) {
    return run(predict_words({"--explain", "--tokens", "2T", "--seed", seed})).out;
  };
  EXPECT_NE(explained("1"), explained("2"));
  EXPECT_EQ(explained("1"), explained("1"));
}

TEST(PredictCommand, FoldedAndUnfoldedAgree) {
  const double folded = forecast()["step_time_s"];
  const double unfolded = forecast({"--unfolded"})["step_time_s"];
  EXPECT_NEAR(folded, unfolded, 1e-9 * folded);
}

TEST(PredictCommand, ReadsItsOwnResolvedScenarioToTheSameForecast) {
  const Folder folder;
  const json out = forecast();
  write_file(folder / "resolved.json", out["resolved"].dump());
  const Outcome again = run({"predict", folder / "resolved.json", "--format", "json"});
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(again.json()["step_time_s"], out["step_time_s"]);
  EXPECT_EQ(again.json()["peak_memory_bytes"], out["peak_memory_bytes"]);
}

TEST(PredictCommand, LaysFlagsOverTheFileAndSetOverFlags) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast": 1, "model": "llama-3.1-8b",
      "cluster": {"base": "dgx-h100", "nodes": 2}, "training": {"global_batch": 64},
      "layout": {"tp": 2, "pp": 2}})");
  const Outcome result = run({"predict", folder / "s.json", "--tp", "4", "--nodes", "1", "--set",
                              "layout.pp=1", "--format", "json"});
  ASSERT_EQ(result.code, 0) << result.error;
  const json layout = result.json()["resolved"]["layout"];
  EXPECT_EQ(layout["tp"], 4);
  EXPECT_EQ(layout["pp"], 1);
  EXPECT_EQ(layout["dp"], 2);
}

TEST(PredictCommand, ResizesAndChangesAClusterThatIsOnlyNamed) {
  const auto cluster = [](const std::vector<std::string>& more) {
    return forecast(more)["resolved"]["cluster"];
  };
  EXPECT_EQ(cluster({"--nodes", "4"})["gpus"], 32);
  EXPECT_EQ(cluster({"--gpus", "8"})["gpus"], 8);
  const std::vector<std::string> slower{"--set", "cluster.oversubscription=4"};
  EXPECT_EQ(cluster(slower)["gpus"], 16);
  EXPECT_GE(forecast(slower)["step_time_s"], forecast()["step_time_s"]);
}

TEST(PredictCommand, AClusterOverAFileKeepsItsSize) {
  const Folder folder;
  const std::string file = folder / "scenario.json";
  const auto resolved = [&](const std::string& cluster, const std::vector<std::string>& more) {
    write_file(file, R"({"stepcast": 1, "model": "llama-3.1-8b", "training": {"global_batch": 64,
                         "sequence_length": 4096}, "layout": {"tp": 8}, "cluster": )" +
                         cluster + "}");
    std::vector<std::string> words{"predict", file, "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).json()["resolved"]["cluster"];
  };
  const std::vector<std::string> other{"--cluster", "dgx-a100-80g"};
  for (const char* cluster : {R"({"base": "dgx-h100", "nodes": 4})",
                              R"({"base": "dgx-h100", "gpus": 32})", R"("dgx-h100x4")"}) {
    const json kept = resolved(cluster, other);
    EXPECT_EQ(kept["gpus"], 32) << cluster;
    EXPECT_EQ(kept["base"], "dgx-a100-80g") << cluster;
    EXPECT_EQ(resolved(cluster, {"--cluster", "dgx-a100-80gx2"})["gpus"], 16) << cluster;
    EXPECT_EQ(resolved(cluster, {"--cluster", "dgx-a100-80g", "--gpus", "8"})["gpus"], 8);
  }
  // The size of this machine is given; --cluster local does not keep the file's.
  EXPECT_EQ(resolved(R"("dgx-h100x4")", {"--cluster", "local", "--tp", "1", "--precision", "fp32",
                                         "--framework", "native"})["base"],
            "local");
}

TEST(PredictCommand, AMissingKeyNamesItsFlag) {
  const Outcome out = run({"predict", "--model", "llama-3.1-8b", "--cluster", "dgx-h100"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "--global-batch N")) << out.error;
}

TEST(PredictCommand, SaysHowAdaptersAreTrained) {
  const std::vector<std::string> words{"predict",
                                       "--model",
                                       "llama-3.1-8b",
                                       "--cluster",
                                       "pcie-4090-8",
                                       "--gpus",
                                       "1",
                                       "--seq",
                                       "1024",
                                       "--recompute",
                                       "full",
                                       "--global-batch",
                                       "1",
                                       "--framework",
                                       "native",
                                       "--set",
                                       "training.mode=qlora",
                                       "--set",
                                       "training.lora_rank=8"};
  const Outcome out = run(words);
  EXPECT_TRUE(has(out.out, "on 1 GPU of pcie-4090-8")) << out.out;
  EXPECT_TRUE(has(out.out, "native bf16 QLoRA rank 8, 1 sequence of 1024 tokens")) << out.out;
  EXPECT_TRUE(has(out.out, "1 micro-batch of 1")) << out.out;
}

TEST(PredictCommand, AnotherDevicesProfileIsExtrapolatedOrRefused) {
  const json own = forecast()["provenance"];
  const json other = forecast({"--profile", "a100-sxm4-80g"})["provenance"];
  EXPECT_LT(own.value("extrapolated", 0.0), 0.5);
  EXPECT_GT(other.value("extrapolated", 0.0), 0.5);
  const Outcome on_processor =
      run({"predict", "--model", "gpt2", "--cluster", "local", "--gpus", "1", "--precision", "fp32",
           "--global-batch", "1", "--profile", "a100-sxm4-80g"});
  expect_refused(on_processor);
  EXPECT_TRUE(has(on_processor.error, "is of a100-sxm4-80g")) << on_processor.error;
}

TEST(PredictCommand, ExitsWithThreeAndStillPrintsWhenItDoesNotFit) {
  const Outcome result = run({"predict", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x1",
                              "--global-batch", "8", "--format", "json"});
  EXPECT_EQ(result.code, 3) << result.error;
  EXPECT_EQ(result.json()["fits"], false);
  EXPECT_GT(result.json()["step_time_s"], 0);
}

TEST(PredictCommand, WritesCsvAndMarkdown) {
  const Outcome csv = run(predict_words({"--format", "csv"}));
  EXPECT_EQ(csv.code, 0);
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
  const Outcome markdown = run(predict_words({"--format", "md"}));
  EXPECT_EQ(markdown.code, 0);
  EXPECT_NE(markdown.out.find("| --- |"), std::string::npos);
}

TEST(PredictCommand, ExplainsWhatTheForecastRestsOn) {
  const Outcome text = run(predict_words({"--explain"}));
  EXPECT_EQ(text.code, 0) << text.error;
  for (const char* part : {"Resolved scenario", "\"global_batch\": 64", "gemm", "mfu"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
  EXPECT_TRUE(forecast({"--explain"})["explain"]["curves"].is_array());
}

TEST(PredictRun, TokensGiveDaysAndDollarsUnderAKeyOfTheirOwn) {
  EXPECT_FALSE(forecast().contains("economics"));
  const json out =
      forecast({"--tokens", "2.62144B", "--price", "2", "--deadline", "30d", "--budget", "500k"});
  const json& run = out["economics"];
  // 64 x 4096 = 2^18 tokens a step.
  EXPECT_EQ(run["steps"], 10000);
  EXPECT_NEAR(run["training_time_s"], 1e4 * out["step_time_s"].get<double>(), 1e-6);
  EXPECT_NEAR(run["wall_time_s"].get<double>() * run["goodput"].get<double>(),
              run["training_time_s"].get<double>(), 1e-6);
  EXPECT_NEAR(run["cost_usd"], 2 * run["gpu_hours"].get<double>(), 1e-6);
  EXPECT_NEAR(sum_of(run["wall_shares"]), 1, 1e-9);
  EXPECT_EQ(run["meets_deadline"], true);
  EXPECT_EQ(run["within_budget"], true);
  EXPECT_EQ(out["resolved"]["run"]["budget"], 5e5);
}

TEST(PredictRun, IsASectionOfTheTableWithWhatIsAssumed) {
  const Outcome table = run(predict_words({"--tokens", "2T", "--budget", "1"}));
  EXPECT_EQ(table.code, 0) << table.error;
  for (const char* part : {"The run", "goodput", "MISSES the budget", "run.restart", "Llama 3"}) {
    EXPECT_TRUE(has(table.out, part)) << part;
  }
  const Outcome markdown = run(predict_words({"--tokens", "2T", "--format", "md"}));
  EXPECT_TRUE(has(markdown.out, "### The run"));
  const Outcome explained = run(predict_words({"--tokens", "2T", "--explain"}));
  EXPECT_TRUE(has(explained.out, "drawn event by event")) << explained.out;
}

TEST(PredictRun, IsColumnsOfTheCsv) {
  const auto lines = [](const std::string& text) {
    std::vector<std::vector<std::string>> out;
    std::stringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      std::stringstream cells(line);
      out.emplace_back();
      for (std::string cell; std::getline(cells, cell, ',');) out.back().push_back(cell);
    }
    return out;
  };
  const std::vector<std::string> run_flags{"--tokens", "2T", "--price", "2.5"};
  std::vector<std::string> csv = run_flags, as_json = run_flags;
  csv.insert(csv.end(), {"--format", "csv"});
  as_json.insert(as_json.end(), {"--format", "json"});
  const auto table = lines(run(predict_words(csv)).out);
  ASSERT_EQ(table.size(), 2u);
  ASSERT_EQ(table[0].size(), table[1].size());
  const json economics = run(predict_words(as_json)).json()["economics"];
  for (const char* key : {"goodput", "goodput_low", "usd_per_million_tokens", "rented_gpus"}) {
    ASSERT_TRUE(economics.contains(key)) << key;
    const auto at = std::find(table[0].begin(), table[0].end(), std::string("run_") + key);
    ASSERT_NE(at, table[0].end()) << key;
    const std::string& cell = table[1][static_cast<std::size_t>(at - table[0].begin())];
    EXPECT_DOUBLE_EQ(std::stod(cell), economics[key].get<double>()) << key;
  }
  // Without a run there is none.
  EXPECT_FALSE(has(run(predict_words({"--format", "csv"})).out, "run_"));
}

// 50,000 examples of 700 tokens, three times: 105 million tokens.
TEST(PredictRun, CountsExamplesAndTakesAPriceListOfOnesOwn) {
  const Folder folder;
  write_file(folder / "mine.json",
             R"({"stepcast_prices": 1, "prices": [{"cluster": "dgx-h100", "usd_per_gpu_hour": 1.5,
                 "provider": "ours", "as_of": "2026", "source": "a contract"}]})");
  std::vector<std::string> words = {
      "predict", "--model", "gpt3-1.3b", "--cluster", "dgx-h100", "--global-batch",
      "64",      "--quiet", "--format",  "json",      "--prices", folder / "mine.json"};
  std::vector<std::string> counted = words;
  counted.insert(counted.end(),
                 {"--examples", "50k", "--epochs", "3", "--tokens-per-example", "700"});
  words.insert(words.end(), {"--tokens", "105M"});
  const Outcome of_examples = run(counted), of_tokens = run(words);
  ASSERT_EQ(of_examples.code, 0) << of_examples.error;
  ASSERT_EQ(of_tokens.code, 0) << of_tokens.error;
  EXPECT_EQ(of_examples.json()["economics"], of_tokens.json()["economics"]);
  EXPECT_TRUE(has(of_tokens.out, "ours")) << of_tokens.out;
}

TEST(PredictRun, NamesTheFlagOfABadAmount) {
  const Outcome bad = run(predict_words({"--tokens", "2X", "--deadline", "30", "--budget", "-5"}));
  expect_refused(bad);
  for (const char* part : {"--tokens", "'2X'", "a number such as 2T", "--deadline", "--budget"}) {
    EXPECT_TRUE(has(bad.error, part)) << part << bad.error;
  }
}

TEST(PredictOutput, GoesToAFileWhole) {
  const Folder folder;
  const Outcome result = run(predict_words({"--format", "json", "-o", folder / "out.json"}));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(json::accept(read_file(folder / "out.json")));
  EXPECT_EQ(folder.files(), 1u);  // no temporary file is left
}

TEST(PredictOutput, ToAPlaceThatCannotBeWrittenIsRefusedBeforeAnythingElse) {
  const Folder folder;
  expect_refused(run(predict_words({"-o", folder / "no/such/out.json"})));
  expect_refused(run(predict_words({"-o", folder / ""})));
  expect_refused(run(predict_words({"--trace", "/proc/trace.json"})));
  expect_refused(run(predict_words({"-o", folder / "a", "--trace", folder / "a"})));
  EXPECT_EQ(folder.files(), 0u);
}

TEST(PredictOutput, KeepsTheOldFileWhenTheInputIsRefused) {
  const Folder folder;
  write_file(folder / "out.json", "old");
  expect_refused(run(predict_words({"--tp", "3", "-o", folder / "out.json"})));
  EXPECT_EQ(read_file(folder / "out.json"), "old");
}

TEST(PredictOutput, ToAFullDiskOrAClosedPipeIsNoSuccess) {
  EXPECT_NE(run(predict_words(), ">/dev/full").code, 0);
  EXPECT_NE(run(predict_words(), ">&-").code, 0);
  EXPECT_NE(run(predict_words({"-o", "/dev/full"})).code, 0);
}

TEST(PredictTrace, OfManyMicroBatchesSaysThatItIsLarge) {
  const Folder folder;
  const auto note = [&](const std::string& batch) {
    return run(predict_words(
                   {"--set", "training.global_batch=" + batch, "--trace", folder / "trace.json"}))
        .error;
  };
  EXPECT_FALSE(has(note("64"), "MB"));
  const std::string large = note("512");
  EXPECT_GT(std::filesystem::file_size(folder / "trace.json"), 50'000'000u);
  EXPECT_TRUE(has(large, "trace.json has ")) << large;
  EXPECT_TRUE(has(large, "smaller --global-batch")) << large;
}

TEST(PredictTrace, HasNestedSlicesAndEndsInsideTheStep) {
  const Folder folder;
  const Outcome result = run(predict_words(
      {"--quiet", "--trace", folder / "t.json", "--memory-timeline", folder / "m.csv"}));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  const json trace = json::parse(read_file(folder / "t.json"));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"], length = event["dur"];
    EXPECT_GE(length, 0);
    tracks[{event["pid"], event["tid"]}].emplace_back(start, start + length);
  }
  EXPECT_GE(tracks.size(), 4u);         // four stages at least
  constexpr double kPicosecond = 1e-6;  // in microseconds
  for (const auto& [track, slices] : tracks) {
    std::vector<double> open;  // ends of the slices around the next one
    for (const auto& [start, end] : slices) {
      while (!open.empty() && open.back() <= start + kPicosecond) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end, open.back() + kPicosecond);
      }
      open.push_back(end);
    }
  }
  const std::string timeline = read_file(folder / "m.csv");
  EXPECT_GT(std::count(timeline.begin(), timeline.end(), '\n'), 4);
}

TEST(PredictCommand, SamplesAreTheSameBytesForAnyThreads) {
  const auto sampled = [](const char* threads, const char* format) {
    const Outcome result =
        run({"predict", "--model", "gpt2", "--cluster", "dgx-a100-80gx1", "--global-batch", "16",
             "--samples", "12", "--seed", "5", "--threads", threads, "--format", format, "--set",
             "cluster.jitter=0.05", "--set", "cluster.fail=node0/gpu3=80%"});
    EXPECT_EQ(result.code, 0) << result.error;
    return result.out;
  };
  const std::string one = sampled("1", "json");
  EXPECT_EQ(one, sampled("3", "json"));
  const json samples = json::parse(one)["samples"];
  EXPECT_EQ(samples["count"], 12);
  EXPECT_LT(samples["p5_s"], samples["p50_s"]);
  EXPECT_LT(samples["p50_s"], samples["p95_s"]);
  EXPECT_EQ(samples["ranks"][0]["rank"], 3);
  EXPECT_EQ(samples["nodes"][0]["node"], 0);
  const std::string table = sampled("2", "table");
  EXPECT_NE(table.find("12 steps of seed 5"), std::string::npos) << table;
  EXPECT_NE(table.find("rank 3 (node0/gpu3, stage 0)"), std::string::npos) << table;
}

TEST(PredictCommand, ALostNodeSaysWhatItCosts) {
  const std::vector<std::string> words = {
      "predict",        "--model",   "gpt2",        "--cluster", "dgx-a100-80gx4",
      "--global-batch", "64",        "--framework", "megatron",  "--set",
      "run.repair=24h", "--what-if", "fail=node1"};
  const Outcome table = run(words);
  EXPECT_EQ(table.code, 0) << table.error;
  EXPECT_NE(table.out.find("Until node1 is back"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("24 of 32 replicas on 24 GPUs, a global batch of 48 for 64"),
            std::string::npos)
      << table.out;
  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--format", "json"});
  const json loss = run(as_json).json()["loss"];
  EXPECT_EQ(loss["dp"], 24);
  EXPECT_EQ(loss["repair_s"], 86400);
  EXPECT_GT(loss["lost_tokens"], 0);
  EXPECT_LT(loss["lost_time_s"], 86400);
}

}  // namespace
}  // namespace stepcast::testing
