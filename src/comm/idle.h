// SPDX-License-Identifier: Apache-2.0
// Pauses between looks at something that will happen, longer the longer it takes: first none, for
// answers that come at once; then others may run in between; then it sleeps, so that a waiting rank
// leaves its core to ranks that compute.
#pragma once

#include <chrono>

namespace stepcast {

class Idle {
 public:
  Idle();
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  void pause();
  void restart();  // something happened

 private:
  void sleep();

  std::chrono::steady_clock::time_point begin_;
  int yields_ = 0;
  std::chrono::nanoseconds nap_;
  int usual_slack_ns_ = 0;  // of this thread's timers, once they were made exact
};

}  // namespace stepcast
