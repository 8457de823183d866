// SPDX-License-Identifier: Apache-2.0
// Signals that end a process, as they are in a process started by hand: a shell's background jobs
// ignore SIGINT, and a test run may be one.
#pragma once

#include <csignal>

namespace stepcast {

class DefaultSignals {
 public:
  DefaultSignals()
      : interrupt_(::signal(SIGINT, SIG_DFL)), terminate_(::signal(SIGTERM, SIG_DFL)) {}
  ~DefaultSignals() {
    ::signal(SIGINT, interrupt_);
    ::signal(SIGTERM, terminate_);
  }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  sighandler_t interrupt_;
  sighandler_t terminate_;
};

}  // namespace stepcast
