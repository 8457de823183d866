// SPDX-License-Identifier: Apache-2.0
// Kernels that keep the core of a rank busy, and are counted. The time by which they fall behind is
// what a transfer beside them costs.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/protocol/disturbance.h"

namespace stepcast {

class BusyCore {
 public:
  BusyCore();

  void run();  // one product
  // Products without a transfer for so long; what run() is compared with.
  void measure_alone(double seconds);

  void begin();  // counts from now on
  // Seconds of a core that the products since begin() took less than without a transfer.
  double lost_s();

 private:
  ThreadClock clock_;
  std::vector<float> a_, b_, c_;
  std::int64_t count_ = 0;
  double begin_s_ = 0;
  double each_s_ = 0;     // of wall time, alone
  double core_part_ = 0;  // of a core, alone: less than 1 where ranks share cores
};

}  // namespace stepcast
