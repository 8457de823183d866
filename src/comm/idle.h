// SPDX-License-Identifier: Apache-2.0
// Pauses between looks at something that will happen, longer the longer it takes: first none, for
// answers that come at once; then others may run in between; then it sleeps, so that a waiting rank
// leaves its core to ranks that compute.
#pragma once

#include <chrono>

namespace stepcast {

enum class FirstPauses {
  kSpin,  // of a rank that has nothing to do but wait
  kNap,   // of a thread beside one that computes: any spin would be taken from that
};

class Idle {
 public:
  explicit Idle(FirstPauses first = FirstPauses::kSpin);
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  void pause();
  void restart();  // something happened

 private:
  void sleep();

  const FirstPauses first_;
  std::chrono::steady_clock::time_point begin_;
  int yields_ = 0;
  std::chrono::nanoseconds nap_;
  int usual_slack_ns_ = 0;  // of this thread's timers, once they were made exact
};

}  // namespace stepcast
