// SPDX-License-Identifier: Apache-2.0
// A rank that ends, or does not, in the way that its argument names.
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "launch/rank_report.h"

namespace {

using stepcast::RankFailure;
using stepcast::RankReporter;

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void work_in_phases(RankReporter& reporter) {
  for (int i = 0; i <= 3; ++i) {
    reporter.progress("steps", i, 3, "a step");
    barrier();
  }
}

// Address space for a quarter of a GiB more than now, then all of it.
void take_all_memory(RankReporter& reporter) {
  constexpr std::size_t kRoom = std::size_t{1} << 28;
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const rlim_t limit = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + kRoom;
  const rlimit both{limit, limit};
  ::setrlimit(RLIMIT_AS, &both);
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(1 << 20);
  try {
    while (true) blocks.emplace_back(new char[1 << 20]);
  } catch (const std::bad_alloc&) {
    reporter.failed(RankFailure::kOutOfMemory, "activations of 12 GiB do not fit");
  }
  std::exit(1);
}

void flood() {
  const std::string line(99, 'x');
  for (int i = 0; i < 100'000; ++i) std::puts(line.c_str());
  std::fflush(stdout);
}

// Tells the test what it needs to know of mpirun and of the files of this job.
void describe(RankReporter& reporter) {
  const char* folder = std::getenv("PMIX_SERVER_TMPDIR");
  const char* job = std::getenv("PMIX_NAMESPACE");
  reporter.warning(std::to_string(::getppid()) + " " + (folder ? folder : "-") + " " +
                   (job ? job : "-"));
}

struct Self {
  int rank;
  RankReporter& reporter;
};

// Rank 1 does one of these, while the others wait for it in a barrier.
const std::map<std::string, std::function<void(Self)>>& fates() {
  static const std::map<std::string, std::function<void(Self)>> all{
      {"exit", [](Self) { std::exit(3); }},
      {"leave", [](Self) { std::exit(0); }},
      {"abort", [](Self) { std::abort(); }},
      {"mpi-abort", [](Self) { MPI_Abort(MPI_COMM_WORLD, 7); }},
      {"segfault", [](Self) { std::raise(SIGSEGV); }},
      {"kill", [](Self) { std::raise(SIGKILL); }},
      {"hang", [](Self) { hang(); }},
      {"memory", [](Self self) { take_all_memory(self.reporter); }},
      {"numerics",
       [](Self self) {
         self.reporter.failed(RankFailure::kNumerics, "gradient of \"wte\": 1.5 instead of 1.25");
         std::exit(1);
       }},
      {"numerics-and-hang",
       [](Self self) {
         self.reporter.failed(RankFailure::kNumerics, "loss is not finite");
         hang();
       }},
  };
  return all;
}

void behave(const std::string& fate, Self self) {
  if (fate == "finish") {
    work_in_phases(self.reporter);
  } else if (fate == "flood") {
    flood();
    work_in_phases(self.reporter);
  } else if (fate == "unfinished") {
    MPI_Finalize();
    std::exit(0);
  } else if (fate == "hang-all") {
    std::signal(SIGTERM, SIG_IGN);
    if (self.rank == 0) describe(self.reporter);
    hang();
  } else if (fate == "lost-peer") {
    if (self.rank == 1) std::raise(SIGSEGV);
    self.reporter.failed(RankFailure::kCommunication, "rank 1 does not answer");
    hang();
  } else if (self.rank == 1) {
    std::fprintf(stderr, "about to %s", fate.c_str());
    fates().at(fate)(self);
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  RankReporter reporter(rank);
  reporter.started();
  behave(argc > 1 ? argv[1] : "finish", {rank, reporter});
  reporter.finished();
  MPI_Finalize();
  return 0;
}
