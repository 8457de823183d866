// SPDX-License-Identifier: Apache-2.0
// Predicts every case of some suites and compares with what was measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "validate/align.h"
#include "validate/suite.h"
#include "validate/summary.h"

namespace stepcast {

struct DataFolders;

struct CheckOptions {
  bool fold = true;
  // Makes the interval of each case without the errors of its publisher's runs.
  bool publisher_left_out = false;
  int threads = 1;  // cases at once; changes no result
  std::function<void(std::size_t done, std::size_t all)> progress;  // from any thread
  // Asked now and then, from any thread; once it is true, cases are left as they are.
  std::function<bool()> stop;
};

struct CheckReport {
  std::vector<CaseResult> cases;  // in the order of the suites
  Summary summary;
  // Files that are there and cannot be read: the figures are not those of the cases then.
  Errors refused;
};

CheckReport check(const std::vector<Suite>& suites, const DataFolders& folders,
                  const CheckOptions& options = {});

}  // namespace stepcast
