// SPDX-License-Identifier: Apache-2.0
#include "sim/clock_end.h"

#include <fmt/format.h>

namespace stepcast::sim {

Error clock_error(TaskId endless, const Describer& words) {
  Error error;
  error.code = ErrorCode::kBadValue;
  error.message = "the step takes longer than a forecast can count: ";
  if (endless.valid()) {
    error.message += fmt::format("{} alone takes more than 11 days", words(endless));
  } else {
    error.message += "a few steps take more than 92 days";
  }
  error.hint = "check the rates of links, the latencies, and the sizes of batch and model";
  return error;
}

}  // namespace stepcast::sim
