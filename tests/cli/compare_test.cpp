// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

std::vector<std::string> compare_words(const std::vector<std::string>& more = {}) {
  std::vector<std::string> out = predict_words(more);
  out[0] = "compare";
  return out;
}

TEST(CompareCommand, ForecastsEachPointOfTheGrid) {
  const Outcome result = run(compare_words(
      {"--vary", "layout.zero=0,1", "--vary", "layout.pp=2,3,4", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  ASSERT_EQ(out["plans"].size(), 4u);
  ASSERT_EQ(out["rejected"].size(), 2u);  // pp 3
  EXPECT_EQ(out["rejected"][0]["varied"]["layout.pp"], 3);
  EXPECT_EQ(out["rejected"][0]["rule"], "layout.pp");
  EXPECT_EQ(out["rejected"][0]["value"], 3);
  EXPECT_TRUE(has(out["rejected"][0]["message"], "does not divide")) << out["rejected"][0];
  EXPECT_EQ(out["rejected"][0]["layout"]["pp"], 3);
  EXPECT_EQ(out["rejected"][0]["layout"]["zero"], 0);
  EXPECT_TRUE(has(out["rejected"][0]["limit"], "use ")) << out["rejected"][0];
  EXPECT_EQ(out["searched"], 6);
  EXPECT_EQ(out["pruned"]["by_rules_or_equal"], 2);
  EXPECT_EQ(out["legal"], 4);
  EXPECT_TRUE(out["proven"]);
  ASSERT_FALSE(out["pareto"].empty());
  EXPECT_EQ(out["pareto"][0]["varied"], out["plans"][0]["varied"]);
  for (const json& plan : out["plans"]) {
    EXPECT_EQ(plan["layout"]["zero"], plan["varied"]["layout.zero"]);
    EXPECT_EQ(plan["layout"]["pp"], plan["varied"]["layout.pp"]);
    const Outcome alone =
        run(predict_words({"--set", "layout.zero=" + plan["varied"]["layout.zero"].dump(), "--set",
                           "layout.pp=" + plan["varied"]["layout.pp"].dump(), "--format", "json"}));
    EXPECT_EQ(alone.json()["step_time_s"], plan["prediction"]["step_time_s"]);
  }
}

// Each optimisation off, with what depends on it: overlapped tensor parallelism exists with
// sequence parallelism alone.
TEST(CompareCommand, TurnsEachOptimisationOffWithWhatDependsOnIt) {
  const std::vector<std::string> scenario = {"--model",        "llama-3.1-8b",
                                             "--cluster",      "dgx-h100x2",
                                             "--global-batch", "64",
                                             "--tp",           "4",
                                             "--pp",           "2",
                                             "--schedule",     "interleaved",
                                             "--vpp",          "2",
                                             "--set",          "layout.overlap.tp=true"};
  const auto asked = [&](const char* command, std::vector<std::string> more) {
    std::vector<std::string> words = {command, "--format", "json"};
    words.insert(words.end(), scenario.begin(), scenario.end());
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const Outcome ablated = asked("compare", {"--ablate"});
  ASSERT_EQ(ablated.code, 0) << ablated.error;
  const json out = ablated.json();
  std::map<std::string, double> step_time_s;
  for (const json& plan : out["plans"]) {
    step_time_s[plan["varied"]["without"]] = plan["prediction"]["step_time_s"];
  }
  EXPECT_EQ(step_time_s["nothing"], asked("predict", {}).json()["step_time_s"]);
  ASSERT_TRUE(step_time_s.contains("sequence_parallel, overlap.tp")) << ablated.out;
  EXPECT_EQ(step_time_s["sequence_parallel, overlap.tp"],
            asked("predict",
                  {"--set", "layout.sequence_parallel=false", "--set", "layout.overlap.tp=false"})
                .json()["step_time_s"]);
  ASSERT_TRUE(step_time_s.contains("attention")) << ablated.out;
  EXPECT_GT(step_time_s["attention"], step_time_s["nothing"]);
  EXPECT_GE(step_time_s.size(), 5u);
  expect_refused(asked("compare", {"--ablate", "--vary", "layout.zero=0,1"}));
  // So many columns of times stand side by side as have room.
  std::vector<std::string> words = {"compare", "--ablate"};
  words.insert(words.end(), scenario.begin(), scenario.end());
  const std::string table = run(words).out;
  const std::size_t begin = table.find("Where the time of the mean rank goes\nwhere");
  ASSERT_NE(begin, std::string::npos) << table;
  EXPECT_LE(table.find('\n', begin + 40) - table.find("where", begin), 100u) << table;
  EXPECT_TRUE(has(table.substr(begin), "--format json has them all")) << table;
}

TEST(CompareCommand, PrintsTheSameForAnyNumberOfThreads) {
  for (const char* format : {"table", "csv", "md"}) {
    const auto words = [&](const char* threads) {
      return compare_words({"--vary", "layout.zero=0,1", "--vary", "layout.micro_batch=1,2",
                            "--threads", threads, "--format", format});
    };
    const Outcome one = run(words("1")), three = run(words("3"));
    EXPECT_EQ(one.code, 0) << one.error;
    EXPECT_EQ(one.out, three.out) << format;
  }
}

// Two pipelines of the first two points, not of the third and not of the one without stages.
TEST(CompareCommand, DrawsThePipelinesOfTheFirstTwo) {
  const Outcome result = run(compare_words({"--vary", "layout.pp=1,2,4,8", "--pipeline"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const std::size_t begin = result.out.find("The pipelines over one step");
  ASSERT_NE(begin, std::string::npos) << result.out;
  const std::string drawn = result.out.substr(begin);
  std::size_t first = 0;
  for (std::size_t at = drawn.find("stage 0 "); at != std::string::npos;
       at = drawn.find("stage 0 ", at + 1)) {
    ++first;
  }
  EXPECT_EQ(first, 2u) << drawn;
  EXPECT_FALSE(has(run(compare_words({"--vary", "layout.pp=1,2"})).out, "The pipelines"));
}

// Twice the nodes with twice the batch are at best as fast.
TEST(CompareCommand, WeakScalingGrowsTheBatch) {
  const Outcome result =
      run(compare_words({"--vary", "cluster.nodes=2,4", "--scaling", "weak", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json report = result.json();
  for (const json& plan : report["plans"]) {
    const int nodes = plan["varied"]["cluster.nodes"];
    EXPECT_EQ(plan["prediction"]["resolved"]["training"]["global_batch"], 32 * nodes);
  }
}

TEST(CompareCommand, WeakScalingRefusesABatchThatIsVariedOrNotWhole) {
  const Outcome varied =
      run(compare_words({"--vary", "training.global_batch=64,128", "--vary", "cluster.nodes=2,4",
                         "--scaling", "weak", "--format", "json"}));
  EXPECT_EQ(varied.code, 2);
  EXPECT_EQ(varied.out, "");
  EXPECT_NE(varied.error.find("--scaling"), std::string::npos) << varied.error;
  // 64 sequences on 24 GPUs are 85.3 on 32.
  const Outcome part = run(
      compare_words({"--vary", "cluster.nodes=3,4", "--vary", "layout.pp=3,4", "--vary",
                     "layout.tp=8", "--vary", "model=gpt3-350m", "--vary",
                     "training.sequence_length=2048", "--scaling", "weak", "--format", "json"}));
  ASSERT_EQ(part.code, 0) << part.error;
  const json out = part.json();
  EXPECT_EQ(out["plans"].size(), 1u);
  bool said = false;
  for (const json& point : out["rejected"]) {
    said = said || (point["varied"]["cluster.nodes"] == 4 && point["varied"]["layout.pp"] == 4 &&
                    point["rule"] == "training.global_batch");
  }
  EXPECT_TRUE(said) << out["rejected"];
}

TEST(CompareCommand, FasterResourcesAreSoughtOneByOne) {
  const Outcome result = run(compare_words({"--tornado", "20", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  const double step = out["plans"][0]["prediction"]["step_time_s"];
  ASSERT_FALSE(out["sensitivity"].empty());
  EXPECT_EQ(out["sensitivity"][0]["resource"], "arithmetic");  // GEMMs bind
  for (const json& one : out["sensitivity"]) {
    EXPECT_GE(one["slower_step_time_s"].get<double>(), step * (1 - 1e-6)) << one;
    EXPECT_LE(one["faster_step_time_s"].get<double>(), step * (1 + 1e-6)) << one;
  }
}

TEST(CompareCommand, WhatIfChangesTheResourceInEveryForecast) {
  const auto step = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(predict_words(words)).json()["step_time_s"].get<double>();
  };
  const double plain = step({});
  EXPECT_EQ(step({"--what-if", "nic=x1"}), plain);
  EXPECT_LT(step({"--what-if", "arithmetic=+20%"}), plain);
  EXPECT_GT(step({"--what-if", "nic=-50%"}), plain);
}

// A percent of PCIe costs 6 % of a step where NCCL doubles its channels for it, which take SMs from
// kernels. The note says so.
TEST(CompareCommand, AWhatIfTellsWhatNcclChoosesOtherwise) {
  const auto changed = [](const std::string& change) {
    return run({"predict", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch",
                "32", "--framework", "fsdp", "--format", "json", "--what-if", change});
  };
  const Outcome before = changed("pcie=-16%"), after = changed("pcie=-17%");
  EXPECT_TRUE(before.error.starts_with("note: with pcie=-16% a step takes ")) << before.error;
  EXPECT_TRUE(after.error.starts_with(
      "note: with pcie=-17%, NCCL takes 32 channels instead of 16 for the reduce_scatter of "
      "4200 MB among 16 ranks (dp)\nnote: with pcie=-17% a step takes "))
      << after.error;
  const auto step = [](const Outcome& one) { return one.json()["step_time_s"].get<double>(); };
  EXPECT_GT(step(after) / step(before), 1.04);
}

std::string first_line_of(const Outcome& result) {
  return result.out.substr(0, result.out.find('\n'));
}

TEST(CompareCommand, ItsHeadlineLeavesOutWhatIsVaried) {
  const std::string sizes = first_line_of(run(compare_words({"--vary", "cluster.nodes=1,2"})));
  EXPECT_EQ(sizes,
            "llama-3.1-8b on dgx-h100 (NVIDIA H100-SXM5-80GB), megatron bf16, 64 sequences "
            "of 4096 tokens");
  const Outcome models = run(compare_words({"--vary", "model=gpt3-6.7b,llama-2-7b", "--vary",
                                            "training.framework=megatron,native", "--vary",
                                            "training.sequence_length=1024,2048"}));
  EXPECT_EQ(first_line_of(models),
            "16 GPUs of dgx-h100 (NVIDIA H100-SXM5-80GB), bf16, 64 sequences");
}

TEST(CompareCommand, RowsStandByPlaceAndUnderScalingByTheGrid) {
  const auto order = [](const Outcome& result, const std::vector<std::string>& rows) {
    std::size_t at = 0;
    for (const std::string& row : rows) {
      const std::size_t next = result.out.find("\n" + row, at);
      EXPECT_NE(next, std::string::npos) << row << "\n" << result.out;
      at = next == std::string::npos ? at : next;
    }
  };
  const Outcome by_place = run(compare_words({"--vary", "cluster.nodes=3,1,2"}));
  order(by_place, {"    1              2", "    2              1", "    -              3"});
  EXPECT_TRUE(has(by_place.out, "nodes 2   nodes 1\n")) << by_place.out;
  const Outcome scaling =
      run(compare_words({"--vary", "cluster.nodes=1,2", "--scaling", "strong"}));
  order(scaling, {"    2              1", "    1              2"});
  EXPECT_FALSE(has(scaling.out, "against the first place")) << scaling.out;
}

// Each point takes its value from the grid, so that of the flag is never looked at.
TEST(CompareCommand, SaysThatAFlagWhoseKeyIsVariedHasNoEffect) {
  const Outcome both = run(compare_words({"--vary", "layout.zero=0,1", "--zero", "nan"}));
  EXPECT_EQ(both.code, 0);
  EXPECT_TRUE(has(both.error, "--zero nan has no effect beside --vary layout.zero\n"))
      << both.error;
  const Outcome one = run(compare_words({"--vary", "layout.zero=0,1"}));
  EXPECT_FALSE(has(one.error, "has no effect")) << one.error;
}

TEST(CompareCommand, BlamesTheVariedKeyAndNotTheFile) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100x1",
      "training": {"global_batch": 8}})");
  const Outcome unknown = run({"compare", folder / "s.json", "--vary", "layout.zer=0,1"});
  expect_refused(unknown);
  EXPECT_EQ(unknown.error.rfind("error: --vary layout.zer: is not a known key", 0), 0u)
      << unknown.error;
}

TEST(CompareCommand, SaysWhichNicOneNodeUses) {
  const Outcome none = run({"predict", "--model", "gpt2", "--cluster", "dgx-h100x1",
                            "--global-batch", "8", "--what-if", "nic=+20%"});
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "'nic' has no effect: one node uses no NIC")) << none.error;
}

TEST(CompareCommand, NamesTheWholePathOfAShortKey) {
  const Outcome tp = run(compare_words({"--vary", "tp=1,2"}));
  expect_refused(tp);
  EXPECT_TRUE(has(tp.error, "did you mean 'layout.tp'?")) << tp.error;
}

TEST(CompareCommand, EndsTheReasonOfAFirstPlaceThatDoesNotFit) {
  const Outcome result = run({"compare", "--model", "llama-2-13b", "--cluster", "dgx-a100-40gx1",
                              "--global-batch", "8", "--vary", "layout.zero=0,1"});
  EXPECT_EQ(result.code, 3) << result.error;
  EXPECT_TRUE(has(result.out, "does not fit\n")) << result.out;
  EXPECT_TRUE(has(result.out, "does not fit; ")) << result.out;
}

TEST(CompareCommand, RefusesWhatItCannotRead) {
  expect_refused(run(compare_words()));
  expect_refused(run(compare_words({"--vary", "layout.zero"})));
  expect_refused(run(compare_words({"--vary", "layout.tpp=1,2"})));
  expect_refused(run(compare_words({"--vary", "layout.zero=0,1", "--what-if", "nic=20"})));
  const Outcome near = run(compare_words({"--vary", "layout.zero=0,1", "--what-if", "nicc=+20%"}));
  expect_refused(near);
  EXPECT_TRUE(has(near.error, "did you mean 'nic'")) << near.error;
}

// The files differ in tp, and in what follows from it: 16 GPUs hold 16 / tp / pp replicas.
TEST(CompareCommand, FilesStandSideBySideWithTheKeysThatDifferFirst) {
  const Folder folder;
  const auto write = [&](const std::string& name, int tp, const char* more) {
    const std::string file = folder / name;
    write_file(file, R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100x2",
        "training": {"global_batch": 64, "sequence_length": 4096}, "layout": {"pp": 4, "tp": )" +
                         std::to_string(tp) + more + "}}");
    return file;
  };
  const std::string a = write("a.json", 2, ""), b = write("b.json", 4, "");
  const json out = run({"compare", a, b, "--format", "json"}).json();
  ASSERT_EQ(out["plans"].size(), 2u);
  std::map<std::string, json> differences;
  for (const json& one : out["differences"]) differences[one["key"]] = one["values"];
  EXPECT_EQ(differences["layout.tp"], (json{{a, "2"}, {b, "4"}}));
  EXPECT_EQ(differences["layout.dp"], (json{{a, "2"}, {b, "1"}}));
  for (const auto& [key, values] : differences) EXPECT_TRUE(key.starts_with("layout.")) << key;
  for (const json& plan : out["plans"]) {
    const Outcome alone = run({"predict", plan["varied"]["file"], "--format", "json"});
    EXPECT_EQ(alone.json()["step_time_s"], plan["prediction"]["step_time_s"]);
  }
  const Outcome table = run({"compare", a, b});
  EXPECT_LT(table.out.find("Keys that differ between the files"), table.out.find("Forecasts"));

  // A flag is laid over both, and may leave nothing to tell them apart.
  const Outcome same = run({"compare", a, b, "--tp", "2"});
  EXPECT_TRUE(has(same.out, "None: they say the same run")) << same.out;
  // A key that one of them has no legal value for is still told.
  const std::string c = write("c.json", 3, R"(, "zero": 1)");
  const Outcome refused = run({"compare", a, c, "--format", "json"});
  ASSERT_EQ(refused.code, 0) << refused.error;
  bool told = false;
  const json stated = refused.json();
  for (const json& one : stated["differences"]) {
    told = told || (one["key"] == "layout.tp" && one["values"][c] == "3");
  }
  EXPECT_TRUE(told) << refused.out;
  expect_refused(run({"compare", a, folder / "none.json"}));
  expect_refused(run({"compare", a, a}));
}

}  // namespace
}  // namespace stepcast::testing
