// SPDX-License-Identifier: Apache-2.0
// The figures of one run that limits may name.
#pragma once

#include <array>

namespace stepcast {

struct LimitedFigure {
  const char* figure;  // as --tolerance and --drift name it
  const char* key;     // of the prediction file
  const char* words;
  bool fraction;  // differences count, not ratios
  double drift;   // from a baseline, unless --drift says otherwise
};

// Memory follows from the program and comes out the same each time. Times of runs on machines that
// others use as well differ by several per cent; a limit below 10 % needs a quiet machine.
inline constexpr std::array kLimitedFigures{
    LimitedFigure{"step_time", "step_time_s", "step time", false, 0.10},
    LimitedFigure{"peak_memory", "peak_memory_bytes", "peak memory", false, 0.01},
    LimitedFigure{"device_memory", "device_used_bytes", "memory of the GPU", false, 0.05},
    LimitedFigure{"bubble_fraction", "bubble_fraction", "bubble", true, 0.05}};

}  // namespace stepcast
