// SPDX-License-Identifier: Apache-2.0
// No text of the program is wider than the screen, which is 100 columns where there is no terminal.
#include <set>

#include "cli/environment.h"
#include "cli/program.h"
#include "report/wrapped_words.h"

namespace stepcast::testing {
namespace {

using Words = std::vector<std::string>;

// Paths are copied, and so are lines of files that stand in a report.
bool may_be_wide(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos || line.find(' ', begin) == std::string::npos ||
         std::string("\"{}[]").find(line[begin]) != std::string::npos;
}

void expect_narrow(const Words& words, std::size_t width) {
  const Outcome outcome = run(words);
  ASSERT_FALSE(outcome.out.empty()) << words.front() << outcome.error;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    if (may_be_wide(line)) continue;
    EXPECT_LE(shown_width(line), width) << words.front() << ": " << line;
  }
}

std::vector<Words> commands() {
  const std::string suite = source_folder() + "/suites/megatron-a100.json";
  std::vector<Words> out{
      predict_words({"--explain"}),
      predict_words({"--pipeline", "--tokens", "1T", "--deadline", "30d"}),
      {"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x1", "--global-batch", "32",
       "--seq", "2048", "--why-not", "tp=8", "--quiet"},
      {"plan", "--model", "llama-2-13b", "--cluster", "dgx-h100x1", "--global-batch", "32", "--seq",
       "1024", "--advise", "--quiet"},
      {"plan", "--model", "gpt3-1.3b", "--seq", "1024", "--global-batch", "16", "--clusters",
       "dgx-h100,gh200-alps", "--gpus", "4..8", "--tokens", "1B", "--deadline", "1d", "--quiet"},
      {"compare", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch", "128",
       "--vary", "layout.tp=1,2,4"},
      {"compare", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2", "--global-batch", "128",
       "--tp", "2", "--ablate"},
      {"check", suite},
      {"topology", "show", "dgx-h100x2"},
      {"doctor"}};
  for (const char* topic :
       {"models", "clusters", "gpus", "prices", "schedules", "keys", "figures", "documents"}) {
    out.push_back({"show", topic});
  }
  for (const char* verb :
       {"predict", "plan", "compare", "check", "calibrate", "validate", "diagnose", "replay",
        "export", "import", "gate", "show", "topology", "serve", "doctor", "completion", "man"}) {
    out.push_back({verb, "--help"});
  }
  return out;
}

TEST(ScreenWidth, NoTextIsWiderThanTheScreen) {
  for (const std::size_t width : {80u, 100u}) {
    const Environment columns("COLUMNS", std::to_string(width));
    for (const Words& words : commands()) expect_narrow(words, width);
  }
}

TEST(ScreenWidth, IsAHundredWithoutATerminal) {
  const Environment none("COLUMNS", "");
  expect_narrow({"show", "keys"}, 100);
}

// Text that programs read has no width.
TEST(ScreenWidth, DoesNotTouchWhatProgramsRead) {
  for (const char* format : {"json", "csv", "md"}) {
    std::set<std::string> outputs;
    for (const char* width : {"80", "400"}) {
      const Environment columns("COLUMNS", width);
      outputs.insert(run({"show", "keys", "--format", format}).out);
    }
    EXPECT_EQ(outputs.size(), 1u) << format;
  }
}

// man fills the lines anew; those of examples stay as they are.
TEST(ScreenWidth, SourceOfTheManualPageIsShort) {
  std::istringstream lines(run({"man"}).out);
  bool example = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == ".nf" || line == ".fi") example = line == ".nf";
    if (example) continue;
    EXPECT_LE(line.size(), 110u) << line;
  }
}

}  // namespace
}  // namespace stepcast::testing
