// SPDX-License-Identifier: Apache-2.0
// One call to the system that fails in the programs that a test starts (fault_points.cpp).
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/program.h"

namespace stepcast::testing {

// While it lives, `fault` meets the programs of this name; "" fails nothing. "write:3+" fails the
// third write and all after it, "open@rank-0:1" the first open of a file with this in its path.
class Fault {
 public:
  explicit Fault(const std::string& fault, const std::string& program = "stepcast")
      : library_("LD_PRELOAD", STEPCAST_FAULT_POINTS),
        program_("STEPCAST_FAULT_PROGRAM", program),
        log_("STEPCAST_FAULT_LOG", folder_ / "log"),
        counts_("STEPCAST_FAULT_COUNTS", folder_ / "counts") {
    if (!fault.empty()) fault_ = std::make_unique<Environment>("STEPCAST_FAULT", fault);
  }

  // Lists the calls that were failed: "write /tmp/report.html", one line each.
  std::string met() const { return read_file(folder_ / "log"); }
  // How many calls of a kind the last program made.
  long count(const std::string& kind) const {
    std::istringstream lines(read_file(folder_ / "counts"));
    std::string name;
    long number = 0, found = -1;
    while (lines >> name >> number) {
      if (name == kind) found = number;
    }
    return found;
  }

 private:
  Folder folder_;
  Environment library_, program_, log_, counts_;
  std::unique_ptr<Environment> fault_;
};

}  // namespace stepcast::testing
