// SPDX-License-Identifier: Apache-2.0
// time = latency + bytes * seconds_per_byte of one collective (Hockney, Parallel Computing 20,
// 1994), by least squares of relative errors: a short message counts as much as a long one. Neither
// term is negative; where the best line has one that is, it is 0 and the other is fitted alone.
#pragma once

#include <vector>

#include "calibrate/fit/fit_error.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

struct TimedSize {
  Bytes size;
  Seconds time;
};

struct AffineFit {
  Seconds latency;
  double seconds_per_byte = 0;  // 0: the sizes do not show in the times
  FitError form;                // of the line at its own points
  FitError held_out;            // at each point, of the line through the others
  // The largest relative fall of the time from one size to the next larger one: a size where the
  // library changed its algorithm, or noise. 0: times never fall.
  double largest_fall = 0;

  Seconds time(Bytes size) const { return latency + Seconds(size.value() * seconds_per_byte); }
};

// Errors: fewer than 3 points, one size only, times that are not positive.
Result<AffineFit> fit_affine(std::vector<TimedSize> points);

}  // namespace stepcast
