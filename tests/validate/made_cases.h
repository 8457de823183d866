// SPDX-License-Identifier: Apache-2.0
// Hand-made results, so that statistics are tested without a forecast.
#pragma once

#include <string>

#include "validate/align.h"

namespace stepcast::testing {

// A case of suite "s" that was predicted at `predicted` seconds and measured at `measured`.
inline CaseResult made_case(std::string id, double predicted, double measured,
                            std::string group = "g") {
  CaseResult out;
  out.suite = "s";
  out.id = std::move(id);
  out.group = std::move(group);
  out.measured.step_time_s = measured;
  out.predicted = CaseFigures{.step_time_s = predicted,
                              .step_time_low_s = 0.9 * predicted,
                              .step_time_high_s = 1.1 * predicted,
                              .peak_memory_bytes = 100};
  out.errors.step_time = (predicted - measured) / measured;
  out.covered = measured >= 0.9 * predicted && measured <= 1.1 * predicted;
  return out;
}

inline CaseResult failed_case(std::string id, std::string why = "tp: 3 is illegal") {
  CaseResult out;
  out.suite = "s";
  out.id = std::move(id);
  out.measured.step_time_s = 1;
  out.failed = std::move(why);
  return out;
}

inline CaseResult unsupported_case(std::string id, std::string why = "not supported yet") {
  CaseResult out = failed_case(std::move(id), std::move(why));
  out.not_supported = true;
  return out;
}

}  // namespace stepcast::testing
