// SPDX-License-Identifier: Apache-2.0
// Thresholds of a forecast and their judgement, by the program as a user runs it.
#include <filesystem>

#include "core/each.h"
#include "program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

std::string log_of(double seconds) {
  std::string out;
  for (int i = 1; i <= 20; ++i) {
    out += " iteration " + std::to_string(i) +
           "/ 20 | elapsed time per iteration (ms): " + std::to_string(seconds * 1000) +
           " | global batch size: 64 | lm loss: 1.0E+00 |\n";
  }
  return out;
}

TEST(AcceptanceCommand, WritesThresholdsAndJudgesResultsByThem) {
  const Folder folder;
  const std::string made = folder / "made", file = made + "/acceptance.json";
  std::vector<std::string> words = predict_words({"--to", "acceptance", "-o", made});
  words.front() = "export";
  const Outcome exported = run(words);
  ASSERT_EQ(exported.code, 0) << exported.error;
  const json thresholds = json::parse(read_file(file));
  EXPECT_FALSE(thresholds["collectives"].empty());
  const std::string script = read_file(made + "/acceptance.sh");
  for (const json& one : each_of(thresholds["collectives"])) {
    EXPECT_TRUE(has(script, one["command"].get<std::string>()));
  }
  const double most = thresholds["most_step_time_s"];

  write_file(folder / "run.log", log_of(0.9 * most));
  const Outcome kept = run({"check", file, "--results", folder / "run.log", "--format", "json"});
  EXPECT_EQ(kept.code, 4) << kept.error;  // no bandwidth was measured
  json out = kept.json();
  EXPECT_EQ(out["passed"], false);
  EXPECT_EQ(out["thresholds"][0]["kept"], true);
  EXPECT_EQ(out["thresholds"][1]["kept"], true);
  EXPECT_EQ(out["thresholds"][2]["kept"], false);
  EXPECT_FALSE(out["thresholds"][2].contains("measured"));

  // A machine that is asked for the step alone.
  json step = thresholds;
  step["collectives"] = json::array();
  write_file(folder / "step.json", step.dump());
  EXPECT_EQ(run({"check", folder / "step.json", "--results", folder / "run.log"}).code, 0);
  write_file(folder / "run.log", log_of(1.1 * most));
  for (const char* format : each_of(std::vector{"table", "md", "csv", "junit", "github"})) {
    const Outcome broken =
        run({"check", folder / "step.json", "--results", folder / "run.log", "--format", format});
    EXPECT_EQ(broken.code, 4) << format << broken.error;
    EXPECT_TRUE(has(broken.out, "step time")) << format << broken.out;
  }
}

// The gate goes on demanding of runs what was demanded of the machine, beside what it asks of
// forecasts and of the run before.
TEST(AcceptanceCommand, TheGateKeepsWhatWasAccepted) {
  const Folder folder;
  const std::string made = folder / "made", file = made + "/acceptance.json";
  const std::string suite = folder / "runs.json", log = folder / "8b.log";
  std::vector<std::string> words = predict_words({"--to", "acceptance", "-o", made});
  words.front() = "export";
  ASSERT_EQ(run(words).code, 0);
  const double most = json::parse(read_file(file))["most_step_time_s"];
  std::vector<std::string> import = predict_words({"--suite", suite});
  import.front() = "import";
  import.insert(import.begin() + 1, log);
  std::vector<std::string> accepted = import;
  accepted.insert(accepted.end(), {"--acceptance", file});
  write_file(log, log_of(0.99 * most));
  Outcome out = run(accepted);
  ASSERT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(run({"check", suite}).code, 0);
  // 2 % slower than the run before is none that the gate tells from chance. The case keeps its
  // limit.
  write_file(log, log_of(1.01 * most));
  ASSERT_EQ(run(import).code, 0);
  out = run({"check", suite});
  EXPECT_EQ(out.code, 4);
  EXPECT_TRUE(has(out.error, "1.0 % above the")) << out.error;
  EXPECT_TRUE(has(out.out, "1 as fast")) << out.out;
  write_file(folder / "more.log", log_of(1));
  accepted.insert(accepted.begin() + 2, folder / "more.log");
  expect_refused(run(accepted));
  accepted = predict_words({"--acceptance", file});
  accepted.front() = "import";
  accepted.insert(accepted.begin() + 1, log);
  expect_refused(run(accepted));
}

TEST(AcceptanceCommand, RefusesResultsThatBelongToNothing) {
  const Folder folder;
  write_file(folder / "run.log", log_of(1));
  Outcome out = run({"check", "megatron-a100", "--results", folder / "run.log"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "--results")) << out.error;
  write_file(folder / "bad.json", R"({"stepcast_acceptance": 1, "gpus": -1})");
  out = run({"check", folder / "bad.json", "--results", folder / "run.log"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "gpus")) << out.error;
}

}  // namespace
}  // namespace stepcast::testing
