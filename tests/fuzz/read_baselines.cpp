// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "validate/baseline.h"
#include "validate/validation_baseline.h"

namespace stepcast::fuzz {

void read_check_baseline(std::string_view text) {
  const auto baseline = read_baseline(std::string(text), "baseline.json", {"suite"});
  say_errors_of(baseline);
  if (baseline) compare_with_baseline(CheckReport{}, *baseline);
}

void read_run_baseline(std::string_view text) {
  say_errors_of(read_validation_baseline(std::string(text), "baseline.json"));
}

}  // namespace stepcast::fuzz
