// SPDX-License-Identifier: Apache-2.0
#include "launch/marked_processes.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "core/text_file.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{5000};
constexpr milliseconds kPause{5};

std::string environment_of(pid_t id) {
  // A process that ends meanwhile has none.
  return read_text_file(fmt::format("/proc/{}/environ", id)).value_or("");
}

// The value of a variable in a block of NAME=VALUE texts that zeros end.
std::string value_in(std::string_view block, std::string_view name) {
  while (!block.empty()) {
    const std::string_view entry = block.substr(0, block.find('\0'));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
    block.remove_prefix(std::min(block.size(), entry.size() + 1));
  }
  return "";
}

using Visitor = std::function<void(pid_t id, const std::string& environment)>;

void for_each_marked(const std::string& mark, const Visitor& visit) {
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t id = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), id);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    if (id == ::getpid()) continue;
    const std::string environment = environment_of(id);
    if (value_in(environment, kLaunchMark) == mark) visit(id, environment);
  }
}

// Collects the files of a job, which Open MPI 4 names in the environment of its ranks.
struct JobFiles {
  std::set<std::string> session_folders;
  std::set<std::string> jobs;  // as the names of shared memory segments spell them

  void add(const std::string& environment) {
    const std::string folder = value_in(environment, "PMIX_SERVER_TMPDIR");
    if (!folder.empty()) session_folders.insert(folder);
    const std::string job = value_in(environment, "PMIX_NAMESPACE");
    std::uint32_t number = 0;
    if (std::from_chars(job.data(), job.data() + job.size(), number).ec == std::errc{}) {
      jobs.insert(fmt::format(".{:x}.", number));
    }
  }

  void remove() const {
    std::error_code error;
    for (const std::string& folder : session_folders) {
      if (folder.find("/ompi.") == std::string::npos) continue;
      fs::remove_all(folder, error);
      fs::remove(fs::path(folder).parent_path(), error);  // if no other launch has one there
    }
    std::vector<fs::path> segments;
    for (fs::directory_iterator at("/dev/shm", error), end; !error && at != end;
         at.increment(error)) {
      const std::string name = at->path().filename().string();
      for (const std::string& job : jobs) {
        if (name.starts_with("vader_segment.") && name.find(job) != std::string::npos) {
          segments.push_back(at->path());
        }
      }
    }
    for (const fs::path& segment : segments) fs::remove(segment, error);
  }
};

// Makes system calls: glibc 2.36 declares these functions for C alone. A number may have been given
// to another process since it was read: a file descriptor stays with the process that it was opened
// for.
void kill_if_marked(pid_t id, const std::string& mark) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, id, 0));
  if (process < 0 && errno == ESRCH) return;
  if (value_in(environment_of(id), kLaunchMark) == mark) {
    if (process >= 0) {
      ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
    } else {
      ::kill(id, SIGKILL);  // a kernel before 5.3
    }
  }
  if (process >= 0) ::close(process);
}

}  // namespace

std::string new_launch_mark() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

bool end_marked_processes(const std::string& mark) {
  JobFiles files;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  bool any = true;
  while (any) {
    any = false;
    for_each_marked(mark, [&](pid_t id, const std::string& environment) {
      any = true;
      files.add(environment);
      kill_if_marked(id, mark);
    });
    if (any && std::chrono::steady_clock::now() >= until) return false;
    if (any) std::this_thread::sleep_for(kPause);
  }
  files.remove();
  return true;
}

}  // namespace stepcast
