// SPDX-License-Identifier: Apache-2.0
// Commands under the limits of a shell's `ulimit`: each does its work, or says what it lacks.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"
#include "core/each.h"

namespace stepcast::testing {
namespace {

using Words = std::vector<std::string>;

const Words kScenario{"--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--global-batch",
                      "8",       "--seq",        "1024"};

Words with_scenario(Words words) {
  words.insert(words.end(), kScenario.begin(), kScenario.end());
  return words;
}

Outcome run_within(__rlimit_resource resource, rlim_t most, const Words& words) {
  const Folder folder;
  const std::string out = folder / "out", error = folder / "error";
  std::vector<char*> arguments{const_cast<char*>(program_path().c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto put = [](const std::string& file, int place) {
      const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      return ::dup2(opened, place) == place;
    };
    for (int inherited = 3; inherited < 64; ++inherited) ::close(inherited);
    const rlimit limit{most, most};
    if (put(out, STDOUT_FILENO) && put(error, STDERR_FILENO) && ::setrlimit(resource, &limit) == 0)
      ::execv(program_path().c_str(), arguments.data());
    ::_exit(126);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_file(out), read_file(error)};
}

// The fourth descriptor is the only one that is free.
TEST(ResourceLimits, ASearchThatMayOpenNoFilesSaysSo) {
  const Outcome outcome = run_within(RLIMIT_NOFILE, 4, with_scenario({"plan", "--quiet"}));
  EXPECT_EQ(outcome.code, 2) << outcome.error;
  EXPECT_TRUE(has(outcome.error, "Too many open files")) << outcome.error;
  EXPECT_FALSE(has(outcome.error, "internal error")) << outcome.error;
}

// Signals cannot be watched meanwhile: what has been forecast is written all the same.
TEST(ResourceLimits, AForecastIsWrittenWithTheLastDescriptor) {
  const Folder folder;
  const Outcome outcome = run_within(
      RLIMIT_NOFILE, 4, with_scenario({"predict", "--quiet", "--trace", folder / "step.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(read_file(folder / "step.json"), "traceEvents"));
}

TEST(ResourceLimits, ASearchWithoutMemorySaysWhatItLacks) {
  AtLeast lacking(2);
  for (rlim_t megabytes = 14; megabytes <= 80; megabytes += 3) {
    const Outcome outcome = run_within(RLIMIT_AS, megabytes << 20,
                                       with_scenario({"plan", "--quiet", "--threads", "2"}));
    if (outcome.code == 0 || outcome.code == 127) continue;  // 127: libraries have no room
    ++lacking;
    EXPECT_EQ(outcome.code, 2) << megabytes;
    EXPECT_TRUE(has(outcome.error, "no memory is left") ||
                has(outcome.error, "no thread can be started"))
        << megabytes << " MB: " << outcome.error;
  }
}

}  // namespace
}  // namespace stepcast::testing
