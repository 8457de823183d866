// SPDX-License-Identifier: Apache-2.0
#include "launch/signal_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

namespace stepcast {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// A signal's disposition belongs to the whole process, and its handler is given nothing but a
// number: this state cannot be anybody's member.
struct Noted {
  std::mutex mutex;  // guards what no handler touches
  int watches = 0;
  std::array<struct sigaction, kSignals.size()> before{};
  std::array<int, 2> pipe{-1, -1};

  std::atomic<int> first{0};
  std::atomic<int> count{0};
};
Noted noted;
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void note(int signal) {
  const int error = errno;
  int none = 0;
  noted.first.compare_exchange_strong(none, signal);
  noted.count.fetch_add(1);
  // Nobody reads: a pipe that has filled up has long woken everybody.
  [[maybe_unused]] const ssize_t written = ::write(noted.pipe[1], "", 1);
  errno = error;
}

void install() {
  if (::pipe2(noted.pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "signals cannot be watched");
  }
  noted.first = 0;
  noted.count = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &noted.before[i]);
    if (noted.before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

void restore() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &noted.before[i], nullptr);
  }
  for (int& file : noted.pipe) {
    ::close(file);
    file = -1;
  }
}

}  // namespace

SignalWatch::SignalWatch() {
  const std::lock_guard lock(noted.mutex);
  if (noted.watches == 0) install();
  ++noted.watches;
}

SignalWatch::~SignalWatch() {
  const std::lock_guard lock(noted.mutex);
  if (--noted.watches == 0) restore();
}

int SignalWatch::file() const { return noted.pipe[0]; }
int SignalWatch::signal() const { return noted.first; }
int SignalWatch::count() const { return noted.count; }

}  // namespace stepcast
