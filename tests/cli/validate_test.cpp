// SPDX-License-Identifier: Apache-2.0
// The command with a program in the place of stepcast-rank that computes nothing: its launch, what
// it makes of the ranks' files and of every way to end.
#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "cli/program.h"
#include "places.h"
#include "scenario_from.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// Two stages on this machine, in the precision that it runs.
std::string scenario_text() {
  GptCase c = small_local();
  c.layers = 2;
  c.hidden = 64;
  c.sequence = 32;
  c.global_batch = 4;
  c.pp = 2;
  return text_of(c);
}

class ValidateCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!mpirun_is_here()) GTEST_SKIP() << "mpirun is not on PATH";
    write_file(scenario_, scenario_text());
    fake(std::filesystem::path(program_folder()) / "tests/cli_fake_rank");
    fate("");
  }
  void TearDown() override {
    ::unsetenv("STEPCAST_RANK_PROGRAM");
    ::unsetenv("STEPCAST_FAKE");
  }
  static void fake(const std::string& program) {
    ::setenv("STEPCAST_RANK_PROGRAM", program.c_str(), 1);
  }
  static void fate(const std::string& fate) { ::setenv("STEPCAST_FAKE", fate.c_str(), 1); }

  Outcome validate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"validate", scenario_,     "--backend",
                                   "cpu",      "--calibrate", "never"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Folder folder_;
  std::string scenario_ = folder_ / "scenario.json";
};

TEST_F(ValidateCommand, SetsMeasuredBesideForecast) {
  const Outcome result = validate({"--format", "json", "--steps", "4"});
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["measured"]["steps"], 4);
  EXPECT_NEAR(out["measured"]["step_time_s"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(out["measured"]["step_time_p90_s"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(out["measured"]["ranks"].size(), 2u);
  EXPECT_EQ(out["measured"]["peak_memory_bytes"], 1 << 20);
  const double predicted = out["predicted"]["step_time_s"];
  EXPECT_GT(predicted, 0);
  EXPECT_NEAR(out["error"]["step_time_s"].get<double>(), (predicted - 0.5) / 0.5, 1e-9);
  EXPECT_EQ(out["numerics"]["loss_relative_error"], 1e-7);
  EXPECT_EQ(out["passed"], true);
  const auto& operations = out["operations"];
  const auto qkv = std::find_if(operations.begin(), operations.end(), [](const json& one) {
    return one["name"] == "qkv" && one["phase"] == "forward";
  });
  ASSERT_NE(qkv, operations.end());
  EXPECT_EQ((*qkv)["measured_s"], 8e-3);
  EXPECT_GT((*qkv)["predicted_s"], 0);
}

TEST_F(ValidateCommand, TellsTheRanksWhatToRun) {
  const std::string kept = folder_ / "kept";
  ASSERT_EQ(validate({"--keep", kept, "--steps", "3", "--warmup", "1", "--seed", "7", "--set",
                      "training.global_batch=8", "--profile", "none"})
                .code,
            0);
  const json job = json::parse(read_file(kept + "/job.json"));
  EXPECT_EQ(job["stepcast_job"], 1);
  EXPECT_EQ(job["task"], "run");
  EXPECT_EQ(job["steps"], 4);  // three periods
  EXPECT_EQ(job["warmup"], 1);
  EXPECT_EQ(job["seed"], 7);
  EXPECT_EQ(job["check_numerics"], true);
  EXPECT_EQ(job["attention"], "fastest");
  EXPECT_EQ(job["scenario"]["training"]["global_batch"], 8);
  EXPECT_EQ(job["scenario"]["layout"]["pp"], 2);  // resolved, but for the cluster
  EXPECT_EQ(job["scenario"]["cluster"], json::parse(scenario_text())["cluster"]);
  EXPECT_TRUE(std::filesystem::exists(kept + "/rank-1.json"));
  expect_refused(validate({"--keep", kept}));  // it is not empty any more
}

TEST_F(ValidateCommand, PrintsATableThatEndsWithTheVerdict) {
  const Outcome result = validate({"--profile", "none"});
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  for (const char* part : {"step time", "p10 to p90", "500", "Operations of rank", "Numerics",
                           "\npassed: step time "}) {
    EXPECT_TRUE(has(result.out, part)) << part << "\n" << result.out;
  }
}

TEST_F(ValidateCommand, WritesAPageWithBothTimelines) {
  const std::string page = folder_ / "page.html";
  const Outcome result = validate({"--profile", "none", "--format", "json", "--html", page});
  ASSERT_EQ(result.code, 0) << result.error;
  const std::string text = read_file(page);
  for (const char* part : {"Passed: step time", "0.5\">500.0 ms", "id=\"forecast-picture\"",
                           "id=\"measured-picture\"", "stage 1"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
  expect_refused(validate({"--html", folder_ / "none/page.html"}));
}

TEST_F(ValidateCommand, ExitsWithFiveBeyondATolerance) {
  EXPECT_EQ(validate({"--tolerance", "step_time=1e9", "--quiet"}).code, 0);
  const Outcome broken = validate({"--tolerance", "step_time=0", "--tolerance", "peak_memory=1e9"});
  EXPECT_EQ(broken.code, 5);
  EXPECT_TRUE(has(broken.out, "failed: ")) << broken.out;
  EXPECT_TRUE(has(broken.out, "step time is off by")) << broken.out;
  EXPECT_FALSE(has(broken.out, "peak memory is off by")) << broken.out;
}

TEST_F(ValidateCommand, ExitsWithFiveWhenNumericsDiffer) {
  fate("inexact");
  const Outcome inexact = validate({"--format", "json"});
  EXPECT_EQ(inexact.code, 5);
  EXPECT_EQ(inexact.json()["passed"], false);
  EXPECT_EQ(validate({"--no-numerics"}).code, 0);
}

TEST_F(ValidateCommand, ReportsARankThatFoundWrongNumbersAndWritesNothing) {
  fate("numerics");
  const Outcome result = validate({"-o", folder_ / "out"});
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.error, "the loss of step 2 is not finite")) << result.error;
  EXPECT_EQ(folder_.files(), 1u);  // the scenario
}

TEST_F(ValidateCommand, ReportsARankThatDies) {
  fate("die");
  const Outcome result = validate({"-o", folder_ / "out"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  // mpirun may end, on a busy machine, before it has said which rank it was.
  EXPECT_TRUE(has(result.error, "error: the run: rank 1 was ended by SIGABRT") ||
              has(result.error, "error: the run: a rank was ended by SIGABRT; mpirun did not say"))
      << result.error;
  EXPECT_TRUE(has(result.error, "about to die")) << result.error;
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(ValidateCommand, EndsARunThatTakesTooLong) {
  fate("hang");
  const Outcome result = validate({"--time-limit", "1"});
  EXPECT_EQ(result.code, 2);  // a limit of the user's, and no fault of the program
  EXPECT_TRUE(has(result.error, "time limit of 1 s passed")) << result.error;
}

TEST_F(ValidateCommand, EndsARunThatIsSilentForTooLong) {
  fate("hang");
  const Outcome result = validate({"--silence-limit", "1"});
  EXPECT_NE(result.code, 0);
  EXPECT_TRUE(has(result.error, "no rank has reported anything for 1 s")) << result.error;
  EXPECT_TRUE(has(result.error, "--silence-limit")) << result.error;
}

TEST_F(ValidateCommand, NamesTheFileThatItCannotRead) {
  fate("short");
  const Outcome result = validate();
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.error, "rank-0.json: steps[0].spans: ")) << result.error;
}

TEST_F(ValidateCommand, ComparesWithABaseline) {
  const std::string baseline = folder_ / "run.json";
  expect_refused(validate({"--profile", "none", "--baseline", baseline}));  // not there yet
  const Outcome first = validate({"--profile", "none", "--baseline", baseline, "--update"});
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_TRUE(has(first.error, "wrote ")) << first.error;
  const std::string text = read_file(baseline);
  EXPECT_EQ(json::parse(text)["stepcast_validation_baseline"], 1);

  // The stand-in's steps always take as long, and so does the same forecast: nothing moved.
  const Outcome same = validate({"--profile", "none", "--baseline", baseline, "--format", "json"});
  ASSERT_EQ(same.code, 0) << same.error;
  const json kept = same.json()["baseline"];
  EXPECT_FALSE(kept.contains("skipped"));
  EXPECT_TRUE(kept["broken"].empty());
  EXPECT_EQ(read_file(baseline), text);

  json faster = json::parse(text);
  faster["measured"]["step_time_s"] = 0.4;
  write_file(baseline, faster.dump());
  const std::string summary = folder_ / "summary.md";
  const Outcome slower = validate(
      {"--profile", "none", "--baseline", baseline, "--format", "github", "--md", summary});
  EXPECT_EQ(slower.code, 4);
  EXPECT_TRUE(has(slower.out, "::error title=measured%3A step time::+25.0 %25 against"))
      << slower.out;
  EXPECT_TRUE(has(slower.error, "broken: measured: step time")) << slower.error;
  const std::string page = folder_ / "page.html";
  const Outcome again =
      validate({"--profile", "none", "--baseline", baseline, "--format", "json", "--html", page});
  EXPECT_EQ(again.code, 4);
  EXPECT_EQ(again.json()["passed"], false);
  EXPECT_EQ(again.json()["broken"].size(), 0u);
  EXPECT_EQ(again.json()["baseline"]["broken"].size(), 1u);
  EXPECT_TRUE(has(read_file(page), "Failed: step time")) << page;
  EXPECT_TRUE(has(read_file(summary), "- failed: step time")) << read_file(summary);
  EXPECT_EQ(
      validate({"--profile", "none", "--baseline", baseline, "--drift", "measured:step_time=0.3"})
          .code,
      0);
  // An error beyond a tolerance is the graver verdict, and such a run is not recorded.
  const std::string before = read_file(baseline);
  const Outcome broken = validate(
      {"--profile", "none", "--baseline", baseline, "--update", "--tolerance", "step_time=0"});
  EXPECT_EQ(broken.code, 5);
  EXPECT_TRUE(has(broken.error, "is left as it was")) << broken.error;
  EXPECT_EQ(read_file(baseline), before);
  EXPECT_EQ(validate({"--profile", "none", "--baseline", baseline, "--update"}).code, 0);
  EXPECT_EQ(read_file(baseline), text);
}

TEST_F(ValidateCommand, DoesNotCompareWithAnotherMachineAndSaysSo) {
  const std::string baseline = folder_ / "run.json";
  ASSERT_EQ(validate({"--profile", "none", "--baseline", baseline, "--update"}).code, 0);
  json other = json::parse(read_file(baseline));
  other["machine"]["device"] = "A processor of another age";
  other["measured"]["step_time_s"] = 1e-3;
  write_file(baseline, other.dump());
  const Outcome result =
      validate({"--profile", "none", "--baseline", baseline, "--format", "github"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(has(result.out, "::warning title=not compared with")) << result.out;
  EXPECT_TRUE(has(result.error, "recorded on 'A processor of another age'")) << result.error;
}

TEST_F(ValidateCommand, RefusesTheBaselineOfAnotherRunBeforeItRuns) {
  const std::string baseline = folder_ / "run.json";
  ASSERT_EQ(validate({"--profile", "none", "--baseline", baseline, "--update"}).code, 0);
  fate("die");  // if it ran
  const Outcome other =
      validate({"--profile", "none", "--baseline", baseline, "--set", "training.global_batch=8"});
  expect_refused(other);
  EXPECT_TRUE(has(other.error, "training.global_batch: was 4 when it was recorded, and is 8"))
      << other.error;
  write_file(baseline, R"({"stepcast_baseline": 1, "summary": {}, "cases": {}})");
  const Outcome check = validate({"--profile", "none", "--baseline", baseline, "--update"});
  expect_refused(check);
  EXPECT_TRUE(has(check.error, "is a baseline of check")) << check.error;
  expect_refused(validate({"--update"}));
  expect_refused(validate({"--drift", "step_time=0.1"}));
  expect_refused(validate({"--baseline", baseline, "--drift", "elsewhere:step_time=0.1"}));
}

TEST_F(ValidateCommand, PrintsTheForecastOfWhatDoesNotFit) {
  // 16 bytes for each of 2^26 * 2^16 parameters of the table: 64 TiB, more than machines have.
  const std::vector<std::string> huge{
      "--set", "model.vocab=67108864", "--set", "model.hidden=65536", "--set", "model.heads=512"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), huge.begin(), huge.end());
    return validate(more);
  };
  const Outcome table = with({});
  EXPECT_EQ(table.code, 3);
  EXPECT_TRUE(has(table.out, "does not fit: ")) << table.out << table.error;
  EXPECT_TRUE(has(table.error, "error: the run needs ")) << table.error;
  const std::string summary = folder_ / "summary.md";
  const Outcome result = with({"--format", "json", "--md", summary});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.json()["predicted"]["fits"], false);
  EXPECT_EQ(result.json()["passed"], false);
  EXPECT_TRUE(has(read_file(summary), "## custom on 2 ")) << read_file(summary);
  EXPECT_TRUE(has(with({"--format", "github"}).out, "::error title=memory::the run needs "));
}

TEST_F(ValidateCommand, WritesWellFormedJunit) {
  const Outcome result =
      validate({"--format", "junit", "--tolerance", "step_time=0", "--profile", "none"});
  EXPECT_EQ(result.code, 5);
  std::istringstream in(result.out);
  boost::property_tree::ptree xml;
  ASSERT_NO_THROW(boost::property_tree::read_xml(in, xml)) << result.out;
  EXPECT_EQ(xml.get_child("testsuites").count("testsuite"), 2u);
  EXPECT_TRUE(has(result.out, "failures=\"1\""));
}

TEST_F(ValidateCommand, RefusesWhatItCannotRun) {
  const Outcome gpu = validate({"--cluster", "dgx-h100", "--gpus", "2"});
  expect_refused(gpu);
  EXPECT_TRUE(has(gpu.error, "runs on processors")) << gpu.error;
  const Outcome cuda = run({"validate", scenario_, "--backend", "cuda"});
  expect_refused(cuda);
  EXPECT_TRUE(has(cuda.error, "runs on GPUs")) << cuda.error;
  const Outcome alone = validate({"--rank", "0"});
  expect_refused(alone);
  EXPECT_TRUE(has(alone.error, "--rank: one rank alone is not run by the CPU backend"))
      << alone.error;
  expect_refused(validate({"--precision", "bf16"}));
  expect_refused(validate({"--tolerance", "step_time.bias=0.1"}));
  expect_refused(validate({"--steps", "0"}));
  expect_refused(validate({"--profile", folder_ / "absent.json", "--calibrate", "never"}));
  fake(folder_ / "absent");
  const Outcome absent = validate({"--profile", "none"});
  expect_refused(absent);
  EXPECT_TRUE(has(absent.error, "absent")) << absent.error;
}

}  // namespace
}  // namespace stepcast::testing
