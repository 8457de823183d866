// SPDX-License-Identifier: Apache-2.0
// A suite as it was read, behind the public class.
#pragma once

#include "stepcast/suites.h"
#include "validate/suite.h"

namespace stepcast::api {

struct Suite::Made {
  Data data;
  stepcast::Suite suite;
};

}  // namespace stepcast::api
