// SPDX-License-Identifier: Apache-2.0
// Test results as JUnit XML, which every CI system reads.
#pragma once

#include <string>
#include <vector>

#include "core/text/written.h"
#include "validate/tolerance.h"

namespace stepcast {

enum class JunitOutcome { kPassed, kFailed, kError, kSkipped };

struct JunitCase {
  std::string suite;
  std::string name;
  JunitOutcome outcome = JunitOutcome::kPassed;
  std::string text;  // why not passed; of a passed one what it printed, empty: nothing
};

struct JunitSuite {
  std::string name;
  std::vector<JunitCase> cases;
};

// A suite "gate" with a failure per finding, or one test that passed.
JunitSuite junit_gate(const std::vector<Finding>& broken);

Written junit_xml(const std::string& name, const std::vector<JunitSuite>& suites);

}  // namespace stepcast
