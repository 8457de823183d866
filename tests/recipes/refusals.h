// SPDX-License-Identifier: Apache-2.0
// How an export says that a launcher cannot start a scenario.
#pragma once

#include <algorithm>

#include "core/error.h"

namespace stepcast::testing {

// A refusal is the framework's own rule, or names the value that it has no word for.
inline bool says_why(const Error& error) {
  return error.message.find("refuses") != std::string::npos ||
         error.message.find("cannot be said in") != std::string::npos ||
         error.message.find("has no setting in") != std::string::npos;
}

inline bool says_why(const Errors& errors) {
  return !errors.empty() &&
         std::ranges::all_of(errors, [](const Error& error) { return says_why(error); });
}

}  // namespace stepcast::testing
