// SPDX-License-Identifier: Apache-2.0
// Graphs of other simulators over a cluster, by the program as a user runs it.
#include <filesystem>

#include "core/each.h"
#include "program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

const std::string kSchedule =
    "num_ranks 2\nrank 0 {\na: calc 2000\nb: send 1000b to 1 tag 0\nb requires a\n}\n"
    "rank 1 {\na: recv 1000b from 0 tag 0\nb: calc 3000\nb requires a\n}\n";

// The forecast's own program, exported and replayed over the same cluster.
TEST(ReplayCommand, RunsWhatExportWrites) {
  const Folder folder;
  const std::string made = folder / "made";
  std::vector<std::string> words = predict_words({"--to", "chakra", "-o", made});
  words.front() = "export";
  const Outcome exported = run(words);
  ASSERT_EQ(exported.code, 0) << exported.error;
  EXPECT_TRUE(std::filesystem::exists(made + "/trace.0.et"));
  EXPECT_TRUE(std::filesystem::exists(made + "/groups.json"));

  const json forecast = run(predict_words({"--format", "json"})).json();
  const std::string trace = folder / "replay.trace.json";
  const Outcome replayed = run({"replay", made, "--groups", made + "/groups.json", "--cluster",
                                "dgx-h100", "--format", "json", "--trace", trace});
  ASSERT_EQ(replayed.code, 0) << replayed.error;
  const json out = replayed.json();
  const double step = forecast["step_time_s"], time = out["time_s"];
  EXPECT_NEAR(time, step, 0.05 * step);
  EXPECT_FALSE(out["messages"].empty());
  EXPECT_FALSE(json::parse(read_file(trace))["traceEvents"].empty());
  EXPECT_TRUE(has(replayed.error, "opens in Perfetto"));
}

TEST(ReplayCommand, PrintsATableCsvAndMarkdown) {
  const Folder folder;
  write_file(folder / "app.goal", kSchedule);
  const auto replay = [&](const std::string& format) {
    return run({"replay", folder / "app.goal", "--cluster", "dgx-h100", "--format", format});
  };
  const Outcome table = replay("table");
  ASSERT_EQ(table.code, 0) << table.error;
  EXPECT_TRUE(has(table.out, "2 ranks, 4 nodes, GOAL")) << table.out;
  EXPECT_TRUE(has(table.out, "Critical path")) << table.out;
  EXPECT_TRUE(has(replay("csv").out, "rank,end_s,compute_s"));
  EXPECT_TRUE(has(replay("md").out, "| --- |"));
}

// A forecast computes far faster than 1 TFLOP/s, by the times of its file.
TEST(ReplayCommand, ComputesAsTheSystemFileSays) {
  const Folder folder;
  const std::string made = folder / "made";
  std::vector<std::string> words = predict_words({"--to", "chakra", "-o", made});
  words.front() = "export";
  ASSERT_EQ(run(words).code, 0);
  const auto forecast_ranks = [&] {
    int out = 0;
    while (std::filesystem::exists(made + "/trace." + std::to_string(out) + ".et")) ++out;
    return out;
  };
  write_file(folder / "net.yml", "topology: [Switch]\nnpus_count: [" +
                                     std::to_string(forecast_ranks()) +
                                     "]\nbandwidth: [100]\nlatency: [500]\n");
  write_file(folder / "off.json", R"({"peak-perf": 1, "local-mem-bw": 2000})");
  write_file(folder / "on.json",
             R"({"peak-perf": 1, "local-mem-bw": 2000, "roofline-enabled": 1, "name": "x"})");
  const auto replay = [&](const std::string& system, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"replay",    made,
                                    "--groups",  made + "/groups.json",
                                    "--network", folder / "net.yml",
                                    "--system",  folder / system,
                                    "--format",  "json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const auto time = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.json()["time_s"].get<double>();
  };
  const Outcome on = replay("on.json", {});
  EXPECT_TRUE(has(on.error, "keys that have no meaning here: name")) << on.error;
  EXPECT_EQ(time(on), time(replay("off.json", {"--compute", "model"})));
  EXPECT_EQ(time(replay("on.json", {"--compute", "file"})), time(replay("off.json", {})));
  EXPECT_GT(time(on), 10 * time(replay("off.json", {})));  // a GPU has far more than 1 TFLOP/s
}

TEST(ReplayCommand, TakesAProfileAndAMapOfRanks) {
  const Folder folder;
  write_file(folder / "app.goal", kSchedule);
  write_file(folder / "map.json", "[0, 8]");
  write_file(folder / "short.json", "[0]");
  const auto replay = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        "replay", folder / "app.goal", "--cluster", "dgx-h100", "--nodes", "2", "--format", "json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const auto time = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome.json()["time_s"].get<double>();
  };
  EXPECT_GT(time(replay({"--rank-map", folder / "map.json"})), time(replay({})));
  EXPECT_EQ(time(replay({"--profile", "h100-sxm5-80g"})), time(replay({})));
  const Outcome unknown = replay({"--profile", "h100-of-mine"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_TRUE(has(unknown.error, "--profile")) << unknown.error;
  EXPECT_TRUE(has(replay({"--rank-map", folder / "short.json"}).error, "names 1 GPUs"));
}

TEST(ReplayCommand, NamesFileNodeAndFix) {
  const Folder folder;
  write_file(folder / "app.goal", kSchedule);
  write_file(folder / "cut.goal", kSchedule.substr(0, kSchedule.find('}')));
  write_file(folder / "lost.goal",
             "num_ranks 2\nrank 0 {\na: recv 8b from 1 tag 5\n}\nrank 1 {\n}\n");
  write_file(folder / "app.1.et", "x");
  write_file(folder / "net.yml",
             "topology: [Ring]\nnpus_count: [1]\nbandwidth: [1]\nlatency: [1]\n");
  struct Case {
    std::vector<std::string> words;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{folder / "app.goal"}, "--cluster"},
      {{folder / "none", "--cluster", "dgx-h100"}, "there is no such file"},
      {{folder / "cut.goal", "--cluster", "dgx-h100"}, "ends inside rank 0"},
      {{folder / "lost.goal", "--cluster", "dgx-h100"}, "receives from rank 1 with tag 5"},
      {{folder / "app.1.et", "--cluster", "dgx-h100"}, "the file of rank 0 is missing"},
      {{folder / "app.goal", "--network", folder / "net.yml"}, "the graph has 2 ranks"},
      {{folder / "app.goal", "--cluster", "dgx-h100", "--network", folder / "net.yml"},
       "does not go with --network"},
      {{folder / "app.goal", "--cluster", "dgx-h100", "--system", "x"}, "needs --network"},
      {{folder / "app.goal", "--network", folder / "net.yml", "--compute", "model"},
       "model needs peak-perf or local-mem-bw"},
      {{folder / "app.goal", "--cluster", "dgx-h100", "--trace-ranks", "7", "--trace",
        folder / "t.json"},
       "'7' is no rank of the graph"}};
  for (const Case& one : each_of(cases)) {
    std::vector<std::string> words = {"replay"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const Outcome out = run(words);
    EXPECT_EQ(out.code, 2) << one.said;
    EXPECT_TRUE(has(out.error, one.said)) << out.error;
    EXPECT_EQ(out.out, "") << one.said;
  }
}

TEST(ImportCommand, TakesTheTwoFilesOfARunWithTrl) {
  const Folder folder;
  write_file(folder / "sft.yaml",
             "model_name_or_path: llama-3.1-8b\nper_device_train_batch_size: 2\n"
             "gradient_accumulation_steps: 4\nmax_length: 4096\npacking: true\n");
  write_file(folder / "accelerate.yaml",
             "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
             "  fsdp_reshard_after_forward: true\n");
  for (const bool first : each_of(std::vector<bool>{true, false})) {
    const std::string a = folder / "sft.yaml", b = folder / "accelerate.yaml";
    const Outcome out =
        run({"import", first ? a : b, first ? b : a, "--cluster", "dgx-h100", "--quiet"});
    ASSERT_EQ(out.code, 0) << out.error;
    EXPECT_EQ(out.json()["layout"]["zero"], 3);
    EXPECT_EQ(out.json()["training"]["global_batch"], 64);
  }
  const Outcome twice =
      run({"import", folder / "sft.yaml", folder / "sft.yaml", "--cluster", "dgx-h100"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(has(twice.error, "are not the two files of one run")) << twice.error;
}

}  // namespace
}  // namespace stepcast::testing
