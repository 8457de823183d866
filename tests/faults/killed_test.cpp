// SPDX-License-Identifier: Apache-2.0
// A command that is killed cannot tidy up. The next one does.
#include <fmt/format.h>

#include <csignal>
#include <iterator>
#include <sstream>
#include <thread>

#include "core/file_size_limit.h"
#include "faults/fault.h"
#include "places.h"
#include "scenario_text.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

// Starts the program without waiting for it; the child leads a process group of its own.
pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> arguments{const_cast<char*>(program_path().c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(program_path().c_str(), arguments.data());
    ::_exit(127);
  }
  return child;
}

std::vector<fs::path> scratch_folders(const fs::path& place) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(place)) {
    if (entry.path().filename().string().starts_with("stepcast-scratch-")) {
      out.push_back(entry.path());
    }
  }
  return out;
}

std::vector<std::string> children_of(pid_t process) {
  std::istringstream ids(read_file(fmt::format("/proc/{0}/task/{0}/children", process)));
  return {std::istream_iterator<std::string>(ids), {}};
}

// A process that nobody has waited for has no words any more either.
void wait_for_end(const std::string& process) {
  while (!read_file("/proc/" + process + "/cmdline").empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(Killed, ARunLeavesAFolderThatTheNextOneRemovesAndThatOfALivingOneStays) {
  if (!mpirun_is_here()) GTEST_SKIP() << "mpirun is not on PATH";
  const Folder folder;
  fs::create_directory(folder / "tmp");
  write_file(folder / "scenario.json", two_local_stages());
  const Environment tmp("TMPDIR", folder / "tmp");
  const Environment rank("STEPCAST_RANK_PROGRAM",
                         fs::path(program_folder()) / "tests/cli_fake_rank");
  const std::vector<std::string> words{"validate", folder / "scenario.json", "--calibrate", "never",
                                       "--quiet"};
  std::vector<pid_t> running;
  {
    const Environment hang("STEPCAST_FAKE", "hang");
    running = {start(words), start(words)};
    // Until each has written the job of its ranks.
    const auto at_work = [&] {
      const auto folders = scratch_folders(folder / "tmp");
      return std::count_if(folders.begin(), folders.end(),
                           [](const fs::path& one) { return fs::exists(one / "job.json"); }) == 2;
    };
    const auto launched = [&] {
      return !children_of(running[0]).empty() && !children_of(running[1]).empty();
    };
    while (!at_work() || !launched()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::vector<std::string> launchers = children_of(running[0]);
  ::kill(running[0], SIGKILL);
  ::waitpid(running[0], nullptr, 0);
  for (const std::string& launcher : launchers) wait_for_end(launcher);
  // Each has one for its ranks' files and one for those of Open MPI; the dead one could do nothing.
  ASSERT_EQ(scratch_folders(folder / "tmp").size(), 4u);
  const Outcome next = run(words);
  EXPECT_EQ(next.code, 0) << next.error;
  EXPECT_EQ(scratch_folders(folder / "tmp").size(), 2u);
  ::kill(running[1], SIGTERM);
  ::waitpid(running[1], nullptr, 0);
  EXPECT_TRUE(fs::is_empty(folder / "tmp"));  // nor has Open MPI left anything beside them
}

// A hundred files are written under other names before the first gets its own.
TEST(Killed, AnExportThatIsToldToEndLeavesNoFileWithoutItsName) {
  const Folder folder;
  const fs::path out = folder / "traces";
  const pid_t exporting =
      start({"export", "--model", "gpt2", "--cluster", "dgx-h100x16", "--global-batch", "128",
             "--seq", "512", "--to", "chakra", "-o", out.string() + "/"});
  const auto has_begun = [&] { return fs::exists(out) && !fs::is_empty(out); };
  while (!has_begun()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(exporting, SIGTERM);
  int status = 0;
  ::waitpid(exporting, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 0) return;  // it had written all of them before
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_FALSE(fs::exists(out));
}

// It is met as a full disk is, and not by a signal that ends the program.
TEST(Killed, AFileThatGrowsBeyondALimitIsAnError) {
  const Folder folder;
  write_file(folder / "old.html", "old");
  Outcome outcome;
  {
    const FileSizeLimit limit(4096);
    std::signal(SIGXFSZ, SIG_DFL);  // as the program finds it
    outcome = run({"predict", "--model", "gpt2", "--cluster", "dgx-h100x1", "--global-batch", "8",
                   "--quiet", "-o", folder / "out.txt", "--html", folder / "old.html"});
  }
  EXPECT_EQ(outcome.code, 2) << outcome.error;
  EXPECT_TRUE(has(outcome.error, "File too large")) << outcome.error;
  EXPECT_EQ(read_file(folder / "old.html"), "old");
}

// Nothing but the standard streams and one more can be opened, once what this process inherited is
// closed: a test runner's log, for one.
TEST(Killed, WithoutFilesToWatchSignalsWithIsNoMistakeOfTheProgram) {
  const Outcome outcome = run_program(
      "/bin/sh", {"-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4; exec \"$@\"", "sh",
                  program_path(), "plan", "--model", "gpt2", "--cluster", "dgx-h100x1",
                  "--global-batch", "8", "--time-limit", "1"});
  EXPECT_EQ(outcome.code, 2) << outcome.error;
  EXPECT_TRUE(has(outcome.error, "Too many open files")) << outcome.error;
}

}  // namespace
}  // namespace stepcast::testing
