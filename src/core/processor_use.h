// SPDX-License-Identifier: Apache-2.0
// How the processors of a machine were used while something was measured on it. Times are seconds,
// summed over all processors.
#pragma once

#include <algorithm>

namespace stepcast {

struct Rows;  // core/rows.h

struct ProcessorUse {
  double span_s = 0;    // all the time that there was: processors x wall time
  double busy_s = 0;    // of it, at work for anybody
  double stolen_s = 0;  // of it, taken by the host of a virtual machine
  double own_s = 0;     // of `busy_s`, at work for those who measured

  static Rows fields();

  double others_fraction() const { return span_s > 0 ? std::max(0.0, busy_s - own_s) / span_s : 0; }
  double stolen_fraction() const { return span_s > 0 ? stolen_s / span_s : 0; }

  // Whether measured times say little of a quiet machine. Quiet runs of one layout differ by about
  // 5 % themselves (docs/validation-cpu.md), so that less is not seen in them. Linux counts in
  // ticks of 10 ms a processor, which are too coarse to judge less than a second.
  bool is_too_busy() const { return span_s >= 1 && others_fraction() + stolen_fraction() > 0.05; }
};

}  // namespace stepcast
