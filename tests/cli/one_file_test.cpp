// SPDX-License-Identifier: Apache-2.0
// The program alone in a folder, with no data beside it or above it.
#include <filesystem>

#include "cli/environment.h"
#include "cli/program.h"
#include "places.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

class OneFile : public ::testing::Test {
 protected:
  OneFile() : program_(folder_ / "stepcast") { fs::copy_file(program_path(), program_); }
  Outcome alone(const std::vector<std::string>& words) const {
    return run_program(program_, words);
  }

  Folder folder_;
  std::string program_;
};

TEST_F(OneFile, ForecastsWhatItForecastsInTheTree) {
  const std::vector<std::vector<std::string>> commands{
      {"predict", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x8", "--global-batch", "512",
       "--tp", "8", "--pp", "4", "--format", "json"},
      {"predict", "--model", "Qwen/Qwen3-30B-A3B", "--cluster", "gb200", "--gpus", "64",
       "--global-batch", "512", "--tokens", "1T", "--format", "json"},
      {"plan", "--model", "llama-3.1-8b", "--clusters", "dgx-h100,dgx-a100-80g", "--gpus", "8",
       "--global-batch", "64", "--objective", "cost", "--tokens", "1B", "--format", "json"},
      {"check", "zero-bubble-a100", "--format", "json"},
      {"show", "gpus", "--format", "json"},
      {"topology", "show", "dgx-h100x2", "--format", "json"}};
  for (const std::vector<std::string>& words : commands) {
    const Outcome here = alone(words), tree = run(words);
    EXPECT_EQ(here.out, tree.out) << words[0] << " " << here.error;
    EXPECT_EQ(here.code, tree.code) << words[0];
    EXPECT_FALSE(here.out.empty()) << words[0];
  }
}

TEST_F(OneFile, SaysThatItsDataIsInside) {
  const Outcome doctor = alone({"doctor"});
  EXPECT_TRUE(has(doctor.out, "inside the program")) << doctor.out;
}

TEST_F(OneFile, ReadsAFolderBesideItOrNamedInTheEnvironmentInstead) {
  const std::vector<std::string> words{"show", "models", "--format", "csv"};
  const auto make_data = [](const std::string& root) {
    fs::create_directories(root + "/topologies");
    fs::create_directories(root + "/models");
    fs::copy_file(source_folder() + "/models/gpt2.json", root + "/models/my-own.json");
  };
  make_data(folder_ / "elsewhere");
  {
    const Environment named("STEPCAST_DATA", folder_ / "elsewhere");
    const Outcome own = alone(words);
    EXPECT_TRUE(has(own.out, "my-own")) << own.error;
    EXPECT_FALSE(has(own.out, "llama")) << own.out;
  }
  make_data(folder_ / "models-of-mine");
  fs::create_directories(folder_ / "bin");
  const std::string installed = folder_ / "bin/stepcast";
  fs::copy_file(program_, installed);
  fs::create_directories(folder_ / "share");
  fs::rename(folder_ / "models-of-mine", folder_ / "share/stepcast");
  EXPECT_TRUE(has(run_program(installed, words).out, "my-own"));
  EXPECT_TRUE(has(alone(words).out, "llama-3.1-8b"));
}

TEST_F(OneFile, NamesTheVariableThatNamesNoData) {
  const Environment named("STEPCAST_DATA", folder_ / "nothing");
  const Outcome outcome = alone({"show", "models"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.error, "STEPCAST_DATA")) << outcome.error;
}

TEST_F(OneFile, AnswersAgentsFromItsOwnData) {
  const std::string call =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",)"
      R"("capabilities":{},"clientInfo":{"name":"test","version":"1"}}})"
      "\n"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list","arguments":)"
      R"({"topic":"models","filter":"llama-3.1-8b"}}})"
      "\n";
  write_file(folder_ / "calls", call);
  const Outcome outcome = run_program(program_, {"serve", "--mcp"}, "<'" + folder_ / "calls" + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.out, "llama-3.1-8b")) << outcome.out;
}

}  // namespace
}  // namespace stepcast::testing
