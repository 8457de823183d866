// SPDX-License-Identifier: Apache-2.0
#include "launch/mpi_launch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/temporary_folder.h"
#include "launch/default_signals.h"
#include "launch/marked_processes.h"
#include "launch/scratch_folder.h"
#include "places.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

bool mpirun_is_here() {
  std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/mpirun").c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Processes other than this one that have `entry` in their environment.
int processes_with(const std::string& entry) {
  int count = 0;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream file(process.path() / "environ", std::ios::binary);
    const std::string block{std::istreambuf_iterator<char>(file), {}};
    if (block.find(entry) != block.npos) ++count;
  }
  return count;
}

class MpiLaunch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!mpirun_is_here()) GTEST_SKIP() << "mpirun is not on PATH";
  }
  void TearDown() override { EXPECT_EQ(processes_with(mark_), 0); }

  RankLaunch launch(const std::string& fate, int ranks = 2) const {
    RankLaunch out;
    out.program.program = fs::path(program_folder()) / "tests/launch_test_rank";
    out.program.arguments = {fate};
    out.program.ranks = ranks;
    out.program.bind = false;  // tests run side by side
    out.program.inherited = environment();
    out.program.added = {mark_};
    return out;
  }

  // Launches that share a folder of Open MPI can meet in it: one removes it when its last rank has
  // ended, while another wants to make a folder there. So each has its own, as the commands do.
  Result<LaunchOutcome> run(RankLaunch launch, const LaunchProgress& progress = {}) const {
    launch.program.session_folder = sessions_ / std::to_string(launches_++);
    fs::create_directory(launch.program.session_folder);
    return launch_ranks(launch, progress);
  }
  LaunchOutcome outcome_of(const RankLaunch& launch, const LaunchProgress& progress = {}) const {
    const auto outcome = run(launch, progress);
    EXPECT_TRUE(outcome) << to_string(outcome ? Errors{} : outcome.error());
    return outcome ? *outcome : LaunchOutcome{};
  }
  LaunchOutcome outcome_of(const std::string& fate) const { return outcome_of(launch(fate)); }

  // A process that launches ranks that never end, told about once they all run.
  pid_t launching_process(int& ranks_run) const {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    const pid_t id = ::fork();
    if (id == 0) {
      const DefaultSignals signals;
      int started = 0;
      const auto outcome = run(launch("hang-all"), [&](const RankReport& report) {
        if (report.event != RankEvent::kStarted || ++started < 2) return;
        [[maybe_unused]] const auto written = ::write(pipe[1], "", 1);
      });
      const bool interrupted = outcome && outcome->end == LaunchEnd::kInterrupted;
      ::_exit(interrupted ? 128 + outcome->signal : 1);
    }
    ::close(pipe[1]);
    ranks_run = pipe[0];
    return id;
  }

  // It stands in the environment of mpirun and of every rank of this test.
  const std::string mark_ = "STEPCAST_OF_ONE_TEST=" + new_launch_mark();

 private:
  const testing::TemporaryFolder sessions_;
  mutable std::atomic<int> launches_{0};
};

TEST_F(MpiLaunch, FinishesWhenAllRanksDoAndTellsTheirProgress) {
  std::set<int> started, finished;
  std::int64_t last_step = 0;
  const LaunchOutcome outcome = outcome_of(launch("finish", 3), [&](const RankReport& report) {
    if (report.event == RankEvent::kStarted) started.insert(report.rank);
    if (report.event == RankEvent::kFinished) finished.insert(report.rank);
    if (report.event == RankEvent::kProgress) {
      EXPECT_EQ(report.phase, "steps");
      EXPECT_EQ(report.total, 3);
      last_step = std::max(last_step, report.done);
    }
  });
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(started, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(finished, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(last_step, 3);
}

TEST_F(MpiLaunch, NamesTheRankAndItsExitCode) {
  const LaunchOutcome outcome = outcome_of("exit");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.message, "rank 1 ended with exit code 3");
  ASSERT_FALSE(outcome.last_lines.empty());
  EXPECT_NE(outcome.last_lines.front().find("about to exit"), std::string::npos);
}

TEST_F(MpiLaunch, NamesTheRankThatLeavesTheOthersInABarrier) {
  const LaunchOutcome outcome = outcome_of("leave");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_NE(outcome.message.find("MPI_Finalize"), std::string::npos) << outcome.message;
}

TEST_F(MpiLaunch, NamesTheSignalOfAnAbort) {
  const LaunchOutcome outcome = outcome_of("abort");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.signal, SIGABRT);
  EXPECT_EQ(outcome.message, "rank 1 was ended by SIGABRT");
}

TEST_F(MpiLaunch, NamesTheSignalOfASegmentationFault) {
  const LaunchOutcome outcome = outcome_of("segfault");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.signal, SIGSEGV);
}

TEST_F(MpiLaunch, TellsTheCodeOfMpiAbort) {
  const LaunchOutcome outcome = outcome_of("mpi-abort");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.exit_code, 7);
  // Open MPI 4.1.4 loses the rank now and then; OpenMpiWords tests that it is read when it is
  // there.
  EXPECT_TRUE(outcome.rank == 1 || outcome.rank == -1) << outcome.rank;
}

TEST_F(MpiLaunch, SaysThatAKilledRankMayHaveRunOutOfMemory) {
  const LaunchOutcome outcome = outcome_of("kill");
  // Out of memory if the kernel killed any process of this machine meanwhile.
  EXPECT_TRUE(outcome.end == LaunchEnd::kDied || outcome.end == LaunchEnd::kOutOfMemory);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_NE(outcome.message.find("SIGKILL"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("memory"), std::string::npos) << outcome.message;
}

TEST_F(MpiLaunch, TellsARankThatReportsThatItRanOutOfMemory) {
  const LaunchOutcome outcome = outcome_of("memory");
  EXPECT_EQ(outcome.end, LaunchEnd::kOutOfMemory);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.message, "rank 1 ran out of memory: activations of 12 GiB do not fit");
}

TEST_F(MpiLaunch, TellsADisagreementOfNumbers) {
  const LaunchOutcome outcome = outcome_of("numerics");
  EXPECT_EQ(outcome.end, LaunchEnd::kNumerics);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_NE(outcome.message.find("gradient of \"wte\": 1.5 instead of 1.25"), std::string::npos)
      << outcome.message;
}

TEST_F(MpiLaunch, EndsRanksThatDoNotEndAfterAFailure) {
  RankLaunch ranks = launch("numerics-and-hang");
  ranks.limits.settle = milliseconds(100);
  const LaunchOutcome outcome = outcome_of(ranks);
  EXPECT_EQ(outcome.end, LaunchEnd::kNumerics);
  EXPECT_EQ(outcome.rank, 1);
}

TEST_F(MpiLaunch, BlamesTheRankThatDiedNotTheOneThatMissesIt) {
  RankLaunch ranks = launch("lost-peer");
  ranks.limits.settle = milliseconds(60'000);  // mpirun notices, and ends by itself
  const LaunchOutcome outcome = outcome_of(ranks);
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.rank, 1);
  EXPECT_EQ(outcome.signal, SIGSEGV);
}

TEST_F(MpiLaunch, EndsRanksThatKeepSilent) {
  RankLaunch ranks = launch("hang");
  ranks.limits.silence = milliseconds(300);
  const LaunchOutcome outcome = outcome_of(ranks);
  EXPECT_EQ(outcome.end, LaunchEnd::kHung);
  EXPECT_NE(outcome.message.find("rank 0, rank 1"), std::string::npos) << outcome.message;
}

TEST_F(MpiLaunch, EndsRanksThatIgnoreTheRequestToEndAtTheTimeLimit) {
  RankLaunch ranks = launch("hang-all");
  ranks.limits.total = milliseconds(1500);
  EXPECT_EQ(outcome_of(ranks).end, LaunchEnd::kTimeLimit);
}

TEST_F(MpiLaunch, ARankThatEndsWellWithoutHavingFinishedIsAFailure) {
  const LaunchOutcome outcome = outcome_of("unfinished");
  EXPECT_EQ(outcome.end, LaunchEnd::kDied);
  EXPECT_EQ(outcome.message, "ended without having finished: rank 0, rank 1");
}

TEST_F(MpiLaunch, AFloodOfOutputLosesNoReport) {
  std::set<int> finished;
  const LaunchOutcome outcome = outcome_of(launch("flood"), [&](const RankReport& report) {
    if (report.event == RankEvent::kFinished) finished.insert(report.rank);
  });
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(finished, (std::set<int>{0, 1}));
}

TEST_F(MpiLaunch, QuotesMpirunWhenItCannotStart) {
  RankLaunch ranks = launch("finish");
  ranks.program.inherited.push_back("STEPCAST_MPIRUN_ARGS=--no-such-option");
  const LaunchOutcome outcome = outcome_of(ranks);
  EXPECT_EQ(outcome.end, LaunchEnd::kNotStarted);
  ASSERT_FALSE(outcome.last_lines.empty());
  EXPECT_NE(outcome.last_lines.front().find("--no-such-option"), std::string::npos);
}

TEST_F(MpiLaunch, AProgramThatReportsNothingHasNotStarted) {
  RankLaunch ranks = launch("3600");
  ranks.program.program = "/bin/sleep";
  ranks.limits.start = milliseconds(500);
  const LaunchOutcome outcome = outcome_of(ranks);
  EXPECT_EQ(outcome.end, LaunchEnd::kNotStarted);
  EXPECT_EQ(outcome.message, "not started within 0.5 s: rank 0, rank 1");
}

TEST_F(MpiLaunch, TwoLaunchesSideBySideDoNotMeet) {
  LaunchOutcome good, bad;
  std::thread other([&] { bad = outcome_of("exit"); });
  good = outcome_of("finish");
  other.join();
  EXPECT_TRUE(good.ok()) << good.message;
  EXPECT_EQ(bad.exit_code, 3);
}

// "PID FOLDER JOB" of mpirun, as rank 0 describes them.
struct Description {
  pid_t mpirun = 0;
  std::string folder;
  std::uint32_t job = 0;

  explicit Description(const std::string& text) {
    std::istringstream(text) >> mpirun >> folder >> job;
  }
  bool has_files() const {
    std::ostringstream segment;
    segment << '.' << std::hex << job << '.';
    for (const auto& file : fs::directory_iterator("/dev/shm")) {
      if (file.path().filename().string().find(segment.str()) != std::string::npos) return true;
    }
    return fs::exists(folder);
  }
};

TEST_F(MpiLaunch, AnMpirunThatDoesNotAnswerLeavesNoRankAndNoFile) {
  RankLaunch ranks = launch("hang-all");
  ranks.limits.silence = ranks.limits.grace = milliseconds(300);
  ranks.limits.start = milliseconds(5000);
  std::string described;
  const LaunchOutcome outcome = outcome_of(ranks, [&](const RankReport& report) {
    if (report.event != RankEvent::kWarning) return;
    described = report.text;
    ::kill(Description(described).mpirun, SIGSTOP);
  });
  EXPECT_EQ(outcome.end, LaunchEnd::kHung);
  EXPECT_FALSE(Description(described).has_files()) << described;
}

TEST_F(MpiLaunch, AKilledMpirunLeavesNoRank) {
  const LaunchOutcome outcome = outcome_of(launch("hang-all"), [](const RankReport& report) {
    if (report.event == RankEvent::kWarning) ::kill(Description(report.text).mpirun, SIGKILL);
  });
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_NE(outcome.message.find("mpirun was ended by SIGKILL"), std::string::npos)
      << outcome.message;
}

TEST_F(MpiLaunch, ProgressThatThrowsEndsTheRanks) {
  const auto launched = [&] {
    return run(launch("hang-all"), [](const RankReport&) { throw std::runtime_error(""); });
  };
  EXPECT_THROW(launched(), std::runtime_error);
}

TEST_F(MpiLaunch, InterruptsEndAllRanksAndAreTold) {
  for (const int signal : {SIGINT, SIGTERM}) {
    int ranks_run = -1;
    const pid_t id = launching_process(ranks_run);
    char byte = 1;
    ASSERT_EQ(::read(ranks_run, &byte, 1), 1);
    ::close(ranks_run);
    ::kill(id, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(id, &status, 0), id);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_EQ(processes_with(mark_), 0);
  }
}

TEST_F(MpiLaunch, RanksEndWhenTheLaunchingProcessIsKilled) {
  int ranks_run = -1;
  const pid_t id = launching_process(ranks_run);
  char byte = 1;
  ASSERT_EQ(::read(ranks_run, &byte, 1), 1);
  ::close(ranks_run);
  ::kill(id, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(id, &status, 0), id);
  // mpirun is told by the kernel and ends its ranks; if it does not, ctest's time limit does.
  while (processes_with(mark_) > 0) std::this_thread::sleep_for(milliseconds(20));
}

TEST_F(MpiLaunch, AnInterruptBeforeTheLaunchEndsItAtOnce) {
  const DefaultSignals signals;
  const auto folder = ScratchFolder::create(::testing::TempDir(), "launch");
  ASSERT_TRUE(folder);
  ::raise(SIGINT);
  EXPECT_EQ(folder->interrupted(), SIGINT);
  const LaunchOutcome outcome = outcome_of("hang-all");
  EXPECT_EQ(outcome.end, LaunchEnd::kInterrupted);
  EXPECT_EQ(outcome.signal, SIGINT);
}

}  // namespace
}  // namespace stepcast
