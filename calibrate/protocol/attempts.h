// SPDX-License-Identifier: Apache-2.0
// Tells what became of the points that a calibration tried, from its journal: a kernel that breaks
// the GPU, hangs or kills its process ends that point, and not the calibration. The next process
// goes on with the others.
#pragma once

#include <optional>
#include <string>

#include "calibrate/protocol/journal.h"

namespace stepcast {

class Attempts {
 public:
  static constexpr int kMost = 2;  // a process may also be ended for no fault of its point

  explicit Attempts(Journal& journal) : journal_(journal) {}

  // Why `key` is not to be tried: it has failed, or has ended its process so often. Nothing where
  // it may be.
  std::optional<std::string> why_not(const std::string& key) const;
  Result<void> begin(const std::string& key);                        // before it is tried
  Result<void> fail(const std::string& key, const std::string& why);  // for good

 private:
  Journal& journal_;
};

}  // namespace stepcast
