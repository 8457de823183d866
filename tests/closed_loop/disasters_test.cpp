// SPDX-License-Identifier: Apache-2.0
// Real ranks and a user's files survive when a rank is killed, the user presses Ctrl-C or the disk
// is full: there is a clear error, no process left behind, nothing half-written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "cli/program.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "gpt_case.h"
#include "launch/default_signals.h"
#include "places.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;

std::string two_ranks() {
  GptCase c = small_local();
  c.hidden = 64;
  c.heads = 4;
  c.sequence = 64;
  c.dp = 2;
  return text_of(c);
}

// Looks again until it holds or a minute has passed.
bool comes_true(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// The processes of the running ranks whose job lies in `folder`.
std::set<pid_t> ranks_of(const std::string& folder) {
  std::set<pid_t> out;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = read_file(entry.path() / "cmdline");
    if (has(words.substr(0, words.find('\0')), "stepcast-rank") && has(words, folder)) {
      out.insert(std::stoi(name));
    }
  }
  return out;
}

// The CPU time of a process so far; 0 of one that is gone.
double cpu_seconds(pid_t process) {
  std::istringstream words(read_file("/proc/" + std::to_string(process) + "/stat"));
  words.ignore(std::numeric_limits<std::streamsize>::max(), ')');  // its number and its name
  std::string skipped;
  for (int field = 3; field < 14; ++field) words >> skipped;
  double user = 0, system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// The program, running; ended by its destructor.
class Running {
 public:
  Running(const Folder& folder, std::vector<std::string> words) : error_(folder / "error") {
    const DefaultSignals untouched;
    std::vector<char*> arguments{const_cast<char*>(program_path().c_str())};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    const int file = ::open(error_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::signal(SIGCHLD, SIG_IGN);  // as a parent that does not look after its children hands it on
    ::execv(program_path().c_str(), arguments.data());
    ::_exit(127);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (process_ > 0) {
      ::kill(process_, SIGTERM);
      ::waitpid(process_, nullptr, 0);
    }
  }

  void signal(int number) const { ::kill(process_, number); }
  // Returns its exit code, and what it said.
  Outcome wait() {
    int status = 0;
    const bool ended = comes_true([&] { return ::waitpid(process_, &status, WNOHANG) != 0; });
    EXPECT_TRUE(ended) << "still running";
    if (ended) process_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", read_file(error_)};
  }

 private:
  std::string error_;
  pid_t process_ = -1;
};

TEST(Disasters, AKilledRankEndsTheRunWithItsNumber) {
  const Folder folder;
  write_file(folder / "scenario.json", two_ranks());
  Running run(folder, {"validate", folder / "scenario.json", "--calibrate", "never", "--steps",
                       "1000000", "--keep", folder / "kept"});
  // Both train: one that dies while MPI starts leaves the other waiting until the launch gives up.
  ASSERT_TRUE(comes_true([&] {
    const std::set<pid_t> ranks = ranks_of(folder / "kept");
    return ranks.size() == 2 &&
           std::ranges::all_of(ranks, [](pid_t rank) { return cpu_seconds(rank) > 1; });
  })) << read_file(folder / "error");
  const pid_t killed = *ranks_of(folder / "kept").begin();
  const std::string environment = read_file("/proc/" + std::to_string(killed) + "/environ");
  const std::string key = "OMPI_COMM_WORLD_RANK=";
  const auto rank = environment.find(key);
  ASSERT_NE(rank, std::string::npos);
  ::kill(killed, SIGKILL);
  const Outcome ended = run.wait();
  EXPECT_EQ(ended.code, 1) << ended.error;
  const std::string number = environment.substr(rank + key.size(), 1);
  const bool named = has(ended.error, "error: the run: rank " + number + " was ended by SIGKILL");
  const bool unnamed =
      has(ended.error, "error: the run: a rank was ended by SIGKILL");  // mpirun's doing
  EXPECT_TRUE(named || unnamed) << ended.error;
  EXPECT_TRUE(comes_true([&] { return ranks_of(folder / "kept").empty(); }));
}

// A line of a journal, as calibrate/protocol/journal.h describes it.
std::string with_checksum(SortedJson point) {
  point.erase("crc32");
  std::string text = json_text(point);
  text.pop_back();
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(crc.checksum()));
  return text + ",\"crc32\":\"" + digits + "\"}";
}

TEST(Disasters, CtrlCEndsACalibrationThatLaterGoesOn) {
  const Folder folder;
  write_file(folder / "scenario.json", two_ranks());
  const std::string profile = folder / "mine.json";
  const std::vector<std::string> calibrate{"calibrate", folder / "scenario.json",
                                           "--backend", "cpu",
                                           "--no-grid", "--budget",
                                           "1000",      "--spread",
                                           "0.0001",    "-o",
                                           profile};
  Running run(folder, calibrate);
  // The machine, and a point that is finished.
  const std::string journal = folder / "mine.json.journal/2-ranks/rank-0.jsonl";
  const auto lines = [&] {
    const std::string text = read_file(journal);
    return std::count(text.begin(), text.end(), '\n');
  };
  ASSERT_TRUE(comes_true([&] { return lines() >= 2; })) << read_file(folder / "error");
  run.signal(SIGINT);
  const Outcome ended = run.wait();
  EXPECT_EQ(ended.code, 128 + SIGINT) << ended.error;
  EXPECT_TRUE(comes_true([&] { return ranks_of(folder / "mine.json.journal").empty(); }));
  EXPECT_FALSE(fs::exists(profile));
  // A number that no calibration reaches, so that the profile shows where it has the point from.
  std::string known = read_file(journal);
  known = known.substr(known.find('\n') + 1);
  SortedJson point = SortedJson::parse(known.substr(0, known.find('\n')));
  const auto signature = point.at("key").get<std::string>();
  point["measurement"]["n"] = 77000;
  for (const char* rank : {"0", "1"}) {
    const std::string file =
        folder / ("mine.json.journal/2-ranks/rank-" + std::string(rank)) + ".jsonl";
    std::ofstream(file, std::ios::app) << with_checksum(point) << '\n';
  }

  std::vector<std::string> again = calibrate;
  again[6] = "2";
  again[8] = "0.2";
  const Outcome finished = testing::run(again);
  EXPECT_EQ(finished.code, 0) << finished.error;
  EXPECT_FALSE(fs::exists(profile + ".journal"));
  std::int64_t samples = 0;
  const auto written = SortedJson::parse(read_file(profile));
  for (const auto& curve : written.at("curves")) {
    if (curve.at("operation") != "exact") continue;
    const auto& columns = curve.at("samples").at("columns");
    const auto n = std::distance(columns.begin(), std::find(columns.begin(), columns.end(), "n"));
    for (const auto& row : curve.at("samples").at("rows")) {
      if (row[0] == signature) samples = row[n].get<std::int64_t>();
    }
  }
  EXPECT_EQ(samples, 2 * 77000) << signature;
}

// A file system of so many bytes at a folder, as far as this process may make one.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, const std::string& size) : folder_(folder) {
    fs::create_directory(folder);
    is_there_ = ::mount("stepcast", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (is_there_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }

 private:
  std::string folder_;
  bool is_there_ = false;
};

TEST(Disasters, AFullDiskEndsACalibrationWithTheFilesName) {
  const Folder folder;
  const SmallDisk disk(folder / "disk", "16k");
  if (!disk.is_there()) GTEST_SKIP() << "needs the right to mount";
  write_file(folder / "scenario.json", two_ranks());
  const std::string profile = folder / "disk/mine.json";
  const Outcome ended =
      testing::run({"calibrate", folder / "scenario.json", "--backend", "cpu", "--no-grid",
                    "--budget", "2", "--spread", "0.2", "-o", profile});
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(has(ended.error, "No space left on device")) << ended.error;
  EXPECT_TRUE(has(ended.error, profile)) << ended.error;
  EXPECT_FALSE(fs::exists(profile));
  EXPECT_TRUE(comes_true([&] { return ranks_of(folder / "disk").empty(); }));
}

}  // namespace
}  // namespace stepcast::testing
