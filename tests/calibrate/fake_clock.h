// SPDX-License-Identifier: Apache-2.0
// A clock that a test moves: work takes what the test says, disturbed as the test says.
#pragma once

#include <optional>

#include "calibrate/protocol/disturbance.h"

namespace stepcast::testing {

class FakeClock final : public MeasuringClock {
 public:
  double now_s() override { return now_s_; }
  Accounting accounting() override { return accounting_; }
  ProcessorState processor() override { return state_; }
  std::optional<double> base_frequency_hz() override { return base_hz; }

  void work(double seconds) {
    now_s_ += seconds;
    accounting_.thread_cpu_s += seconds;
  }
  void wait(double seconds) { now_s_ += seconds; }
  void force_switch() { ++accounting_.forced_switches; }
  void set_state(const ProcessorState& state) { state_ = state; }

  std::optional<double> base_hz;

 private:
  double now_s_ = 0;
  Accounting accounting_;
  ProcessorState state_;
};

}  // namespace stepcast::testing
