// SPDX-License-Identifier: Apache-2.0
// The workflow that users copy: its YAML, and what its steps do, run as GitHub's runner runs them.
#include <yaml-cpp/yaml.h>

#include <set>

#include "core/each.h"

#include "cli/program.h"
#include "places.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kWorkflow = source_folder() + "/examples/github-actions/stepcast-gate.yml";

YAML::Node steps() { return YAML::LoadFile(kWorkflow)["jobs"]["gate"]["steps"]; }

std::string script_of(const std::string& name) {
  for (const YAML::Node& step : steps()) {
    if (step["name"] && step["name"].as<std::string>() == name) {
      return step["run"].as<std::string>();
    }
  }
  ADD_FAILURE() << "no step " << name;
  return "";
}

// A repository of a user, with the program on its PATH.
class GateWorkflow : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "stepcast");
    record(2);
  }

  // One run of the suite, recorded at `measured` seconds.
  void record(double measured) const {
    const json scenario = {{"stepcast", 1},
                           {"model", "llama-3.1-8b"},
                           {"cluster", {{"base", "dgx-h100"}, {"nodes", 1}}},
                           {"training", {{"global_batch", 32}}},
                           {"layout", {{"tp", 2}, {"pp", 2}}}};
    const json suite = {{"stepcast_suite", 1},
                        {"name", "ours"},
                        {"cases",
                         {{{"id", "8b"},
                           {"source", "made for this test"},
                           {"measured", {{"step_time_s", measured}}},
                           {"scenario", scenario}}}}};
    write_file(folder_ / "stepcast/runs.json", suite.dump());
  }

  // A step under the shell of a container without bash, with the workflow's variables.
  Outcome step(const std::string& name) const {
    write_file(folder_ / "script", script_of(name));
    std::string command = "cd '" + folder_ / "" + "' && env PATH='" + program_folder() +
                          "':\"$PATH\" GITHUB_STEP_SUMMARY='" + folder_ / "published" + "'";
    for (const auto& variable : YAML::LoadFile(kWorkflow)["env"]) {
      command +=
          " '" + variable.first.as<std::string>() + "=" + variable.second.as<std::string>() + "'";
    }
    command += " sh -e script >out 2>error";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "out"),
            read_file(folder_ / "error")};
  }

  Folder folder_;
};

TEST_F(GateWorkflow, IsWellFormedAndAsksForNoMoreThanReading) {
  const YAML::Node workflow = YAML::LoadFile(kWorkflow);
  EXPECT_EQ(workflow["permissions"]["contents"].as<std::string>(), "read");
  EXPECT_EQ(workflow["permissions"].size(), 1u);
  std::set<std::string> actions;
  for (const YAML::Node& step : steps()) {
    ASSERT_NE(step["run"].IsDefined(), step["uses"].IsDefined());
    if (step["uses"]) actions.insert(step["uses"].as<std::string>());
    if (!step["run"]) continue;
    write_file(folder_ / "script", step["run"].as<std::string>());
    EXPECT_EQ(std::system(("sh -n '" + folder_ / "script" + "'").c_str()), 0) << step["run"];
  }
  EXPECT_EQ(actions, (std::set<std::string>{"actions/cache@v4", "actions/checkout@v4"}));
}

TEST_F(GateWorkflow, BuildsAsThisTreeIsBuiltAndInstallsWhatIsCached) {
  const std::string build = script_of("Build stepcast"), install = script_of("Install stepcast");
  const std::string dependencies = read_file(source_folder() + "/scripts/install-deps.sh");
  EXPECT_TRUE(has(build, "/tmp/stepcast/scripts/install-deps.sh --build\n"));
  EXPECT_TRUE(has(dependencies, "--build)"));
  EXPECT_TRUE(has(read_file(source_folder() + "/CMakeLists.txt"), "option(STEPCAST_BUILD_TESTS "));
  EXPECT_TRUE(has(build, "-DSTEPCAST_BUILD_TESTS=OFF"));
  std::string cached;
  for (const YAML::Node& step : steps()) {
    if (step["id"]) cached = step["with"]["path"].as<std::string>();
  }
  const std::string folder = fs::path(cached).parent_path();
  EXPECT_TRUE(has(build, "-G DEB -B " + folder + "\n")) << folder;
  EXPECT_TRUE(has(install, " ./" + cached + "\n") || install.ends_with(" ./" + cached)) << cached;
}

TEST_F(GateWorkflow, PassesAndPublishesTheSummary) {
  ASSERT_EQ(run({"check", folder_ / "stepcast/runs.json", "--baseline",
                 folder_ / "stepcast/baseline.json", "--update"})
                .code,
            0);
  const Outcome check = step("Check");
  EXPECT_EQ(check.code, 0) << check.error;
  EXPECT_TRUE(has(check.out, "::notice title=stepcast check::1 case,")) << check.out;
  ASSERT_EQ(step("Publish the summary").code, 0);
  EXPECT_TRUE(read_file(folder_ / "published").starts_with("**passed: 1 case, 0 other changes"))
      << read_file(folder_ / "published");
}

TEST_F(GateWorkflow, FailsOnARegressionAndPublishesItAllTheSame) {
  ASSERT_EQ(run({"check", folder_ / "stepcast/runs.json", "--baseline",
                 folder_ / "stepcast/baseline.json", "--update"})
                .code,
            0);
  record(1e3);  // far slower than it was
  const Outcome check = step("Check");
  EXPECT_EQ(check.code, 4) << check.error;
  EXPECT_TRUE(has(check.out, "::error title=ours/8b::1000 s, was ")) << check.out;
  ASSERT_EQ(step("Publish the summary").code, 0);
  EXPECT_TRUE(has(read_file(folder_ / "published"), "### Broken limits and regressions"));
  // Only that step runs after a failure.
  AtLeast always(1);
  for (const YAML::Node& one : steps()) {
    if (one["if"] && one["if"].as<std::string>() == "always()") {
      ++always;
      EXPECT_EQ(one["name"].as<std::string>(), "Publish the summary");
    }
  }
}

TEST_F(GateWorkflow, SaysWhatIsMissingBeforeTheFirstBaseline) {
  const Outcome check = step("Check");
  EXPECT_EQ(check.code, 2);
  EXPECT_TRUE(has(check.error, "make it with --update")) << check.error;
  EXPECT_EQ(step("Publish the summary").code, 0);  // nothing to publish
  EXPECT_FALSE(fs::exists(folder_ / "published"));
}

}  // namespace
}  // namespace stepcast::testing
