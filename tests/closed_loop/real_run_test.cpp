// SPDX-License-Identifier: Apache-2.0
// The whole loop through the program, with ranks that are processes under mpirun: calibrate, then
// validate. Nothing is asserted of times.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cli/program.h"
#include "core/json_tree.h"

namespace stepcast {
namespace {

using testing::Folder;
using testing::Outcome;
using testing::run;

std::string scenario(int ranks, const std::string& layout) {
  return R"({"stepcast": 1, "model": {"layers": 4, "hidden": 64, "heads": 4, "vocab": 256,
    "max_positions": 64, "mlp": "gelu", "norm": "layernorm", "position": "learned", "biases": true,
    "vocab_multiple": 1, "dropout": 0}, "cluster": {"base": "local", "gpus": )" +
         std::to_string(ranks) +
         R"(}, "training": {"global_batch": 8, "sequence_length": 64, "precision": "fp32",
    "framework": "native"}, "layout": )" +
         layout + "}";
}

void expect_proven(const Outcome& outcome) {
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto result = outcome.json();
  EXPECT_TRUE(result.at("passed").get<bool>());
  EXPECT_LT(result.at("numerics").at("loss_relative_error").get<double>(), 1e-5);
  EXPECT_LT(result.at("numerics").at("parameter_relative_error").get<double>(), 1e-5);
  EXPECT_NEAR(result.at("error").at("peak_memory_bytes").get<double>(), 0, 0.01);
  EXPECT_GT(result.at("measured").at("step_time_s").get<double>(), 0);
  EXPECT_FALSE(result.at("operations").empty());
}

TEST(RealRun, OfDataTensorAndPipelineParallelRanksEqualsOneRank) {
  const Folder folder;
  for (const char* layout : {R"({"dp": 2})", R"({"tp": 2})", R"({"pp": 2, "schedule": "gpipe"})",
                             R"({"dp": 2, "zero": 3})"}) {
    testing::write_file(folder / "scenario.json", scenario(2, layout));
    expect_proven(
        run({"validate", folder / "scenario.json", "--backend", "cpu", "--calibrate", "never",
             "--steps", "2", "--warmup", "1", "--format", "json", "--trace", folder / "run.json"}));
    // Nearly all of the measured step has a reason.
    const Outcome diagnosis = run(
        {"diagnose", folder / "scenario.json", "--trace", folder / "run.json", "--format", "json"});
    ASSERT_EQ(diagnosis.code, 0) << diagnosis.error;
    EXPECT_GE(diagnosis.json().at("measured").at("accounted_fraction").get<double>(), 0.95);
  }
}

TEST(RealRun, OfMoreRanksThanCoresEqualsOneRank) {
  const Folder folder;
  testing::write_file(folder / "scenario.json", scenario(8, R"({"dp": 2, "tp": 2, "pp": 2})"));
  expect_proven(run({"validate", folder / "scenario.json", "--backend", "cpu", "--calibrate",
                     "never", "--steps", "2", "--warmup", "1", "--format", "json"}));
}

TEST(RealRun, CalibratesWhatTheForecastNeeds) {
  const Folder folder;
  testing::write_file(folder / "scenario.json", scenario(2, R"({"dp": 2})"));
  const Outcome made = run({"calibrate", "--backend", "cpu", folder / "scenario.json", "--budget",
                            "2", "--spread", "0.2", "--no-grid", "-o", folder / "mine.json"});
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_EQ(folder.files(), 2u);  // the scenario and the profile: no journal is left
  const Outcome forecast = run({"predict", folder / "scenario.json", "--set",
                                "profile=" + (folder / "mine.json"), "--format", "json"});
  ASSERT_EQ(forecast.code, 0) << forecast.error;
  const auto provenance = forecast.json().at("provenance");
  EXPECT_NEAR(provenance.at("measured").get<double>(), 1, 1e-9);
  // Reductions go on beside kernels: what the two take from each other was measured.
  const auto profile = SortedJson::parse(testing::read_file(folder / "mine.json"));
  bool beside_kernels = false;
  for (const auto& curve : profile.at("curves")) {
    if (!curve.contains("stretch")) continue;
    beside_kernels = true;
    EXPECT_GE(curve.at("stretch").get<double>(), 1);
    EXPECT_GE(curve.at("cpu_share").get<double>(), 0.01);
  }
  EXPECT_TRUE(beside_kernels);
  const auto memory = profile.at("host_memory");
  EXPECT_GE(memory.at("cores").get<int>(), 1);
  for (const char* key : {"update", "update_one_core", "copy_one_core"}) {
    EXPECT_NE(memory.at(key).get<std::string>(), "0 B/s") << key;
  }
}

// States and activations lie in host memory.
TEST(RealRun, OffloadsAndIsProven) {
  const Folder folder;
  testing::write_file(
      folder / "scenario.json",
      scenario(2, R"({"dp": 2, "zero": 2, "offload": {"optimizer": 1, "activations": 1}})"));
  expect_proven(run({"validate", folder / "scenario.json", "--backend", "cpu", "--calibrate",
                     "never", "--steps", "2", "--warmup", "1", "--format", "json"}));
}

TEST(RealRun, MeasuresWhatAProfileLacksAndLeavesTheProfileAlone) {
  const Folder folder;
  testing::write_file(folder / "one.json", scenario(1, "{}"));
  testing::write_file(folder / "two.json", scenario(2, R"({"dp": 2})"));
  const std::string profile = folder / "mine.json";
  const auto validate = [&](const std::string& file, const char* calibrate) {
    const Outcome outcome = run({"validate", file, "--backend", "cpu", "--calibrate", calibrate,
                                 "--profile", profile, "--budget", "1", "--steps", "2", "--warmup",
                                 "1", "--no-numerics", "--format", "json"});
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_NEAR(outcome.json()["predicted"]["provenance"]["measured"].get<double>(), 1, 1e-9);
  };
  validate(folder / "one.json", "auto");
  const std::string made = testing::read_file(profile);
  EXPECT_NE(made, "");
  validate(folder / "two.json", "auto");
  EXPECT_EQ(testing::read_file(profile), made);
  validate(folder / "two.json", "always");
  EXPECT_NE(testing::read_file(profile), made);
}

TEST(RealRun, NeitherCalibratesNorRunsWhatDoesNotFit) {
  const Folder folder;
  std::string text = scenario(2, R"({"dp": 2})");
  const std::string model = R"("hidden": 64, "heads": 4)";
  text.replace(text.find(model), model.size(), R"("hidden": 65536, "heads": 512)");  // 200 G
  testing::write_file(folder / "scenario.json", text);
  const Outcome outcome = run({"validate", folder / "scenario.json", "--backend", "cpu"});
  EXPECT_EQ(outcome.code, 3) << outcome.error;
}

TEST(RealRun, RefusesWhatTheBackendCannotRun) {
  const Folder folder;
  std::string text = scenario(2, R"({"dp": 2})");
  text.replace(text.find(R"("dropout": 0)"), 12, R"("dropout": 0.1)");
  testing::write_file(folder / "scenario.json", text);
  const Outcome refused = run({"validate", folder / "scenario.json", "--backend", "cpu"});
  testing::expect_refused(refused);
  EXPECT_NE(refused.error.find("model.dropout"), std::string::npos) << refused.error;
  const Outcome unmeasured =
      run({"calibrate", folder / "scenario.json", "--backend", "cpu", "-o", folder / "mine.json"});
  testing::expect_refused(unmeasured);
  EXPECT_NE(unmeasured.error.find("model.dropout"), std::string::npos) << unmeasured.error;
}

}  // namespace
}  // namespace stepcast
