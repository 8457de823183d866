// SPDX-License-Identifier: Apache-2.0
// Scenarios that a fault meets.
#pragma once

#include <string>

#include "gpt_case.h"

namespace stepcast::testing {

// Two stages on this machine, of which a real run takes no time to speak of.
inline std::string two_local_stages() {
  GptCase c = tiny_local();
  c.pp = 2;
  return text_of(c);
}

}  // namespace stepcast::testing
