// SPDX-License-Identifier: Apache-2.0
#include "launch/signal_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "launch/default_signals.h"

namespace stepcast {
namespace {

bool readable(int file) {
  pollfd entry{file, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

sighandler_t handler_of(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

void own_handler(int) {}

TEST(SignalWatch, NotesTheFirstSignalAndCountsAll) {
  const DefaultSignals signals;
  const SignalWatch watch;
  EXPECT_EQ(watch.signal(), 0);
  EXPECT_FALSE(readable(watch.file()));
  ::raise(SIGTERM);
  ::raise(SIGINT);
  EXPECT_EQ(watch.signal(), SIGTERM);
  EXPECT_EQ(watch.count(), 2);
  EXPECT_TRUE(readable(watch.file()));
}

TEST(SignalWatch, RestoresWhatWasThere) {
  const auto before = ::signal(SIGTERM, own_handler);
  {
    const SignalWatch outer;
    { const SignalWatch inner; }
    EXPECT_NE(handler_of(SIGTERM), own_handler);
  }
  EXPECT_EQ(handler_of(SIGTERM), own_handler);
  ::signal(SIGTERM, before);
}

TEST(SignalWatch, LeavesIgnoredSignalsIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    const SignalWatch watch;
    ::raise(SIGHUP);
    EXPECT_EQ(watch.signal(), 0);
  }
  EXPECT_EQ(handler_of(SIGHUP), SIG_IGN);
  ::signal(SIGHUP, before);
}

TEST(SignalWatch, SharesAndThenForgetsWhatItNoted) {
  const DefaultSignals signals;
  {
    const SignalWatch first, second;
    ::raise(SIGINT);
    EXPECT_EQ(first.signal(), SIGINT);
    EXPECT_EQ(second.signal(), SIGINT);
  }
  const SignalWatch later;
  EXPECT_EQ(later.signal(), 0);
  EXPECT_FALSE(readable(later.file()));
}

}  // namespace
}  // namespace stepcast
