// SPDX-License-Identifier: Apache-2.0
#include "comm/idle.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace stepcast {
namespace {

using std::chrono::nanoseconds;

// About two messages between processes of one node: longer waits are for ranks that are not there.
constexpr std::chrono::microseconds kSpin(20);
// A yield takes under 1 us when nobody else wants to run, so this phase is about as long as the one
// before.
constexpr int kYields = 20;
// A wake-up costs some 10 us of a core in a virtual machine, a sixth of naps of 50 us. Long waits
// therefore nap longer, but no more than a fiftieth of what they have lasted: that is the delay
// they add.
constexpr std::chrono::microseconds kFirstNap(20), kNap(50), kLongestNap(1000);
constexpr int kNapsPerWait = 50;
// Linux lets sleeps of ordinary threads end up to 50 us late, which is more than they last.
constexpr unsigned long kSlackNs = 1000;

}  // namespace

Idle::Idle(FirstPauses first)
    : first_(first), begin_(std::chrono::steady_clock::now()), nap_(kFirstNap) {}

Idle::~Idle() {
  if (usual_slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(usual_slack_ns_));
}

void Idle::restart() {
  begin_ = std::chrono::steady_clock::now();
  yields_ = 0;
  nap_ = kFirstNap;
}

void Idle::pause() {
  if (first_ == FirstPauses::kNap) return sleep();
  if (std::chrono::steady_clock::now() - begin_ < kSpin) return;
  if (yields_ < kYields) {
    ++yields_;
    sched_yield();
    return;
  }
  sleep();
}

void Idle::sleep() {
  if (usual_slack_ns_ == 0) {
    usual_slack_ns_ = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, kSlackNs);
  }
  std::this_thread::sleep_for(nap_);
  const nanoseconds waited = std::chrono::steady_clock::now() - begin_;
  const nanoseconds longest = std::clamp<nanoseconds>(waited / kNapsPerWait, kNap, kLongestNap);
  nap_ = std::min(nap_ + nap_ / 4, longest);
}

}  // namespace stepcast
