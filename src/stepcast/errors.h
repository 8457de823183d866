// SPDX-License-Identifier: Apache-2.0
// Errors are values: a function that can be asked for something wrong returns a Result, which holds
// the answer or the list of all that is wrong. Each error names the file, the key, and a remedy.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto scenario = stepcast::api::Scenario::parse(*data, R"({"stepcast": 1, "mdl": 3})");
//   if (!scenario) return scenario.error();
//   const auto wrong = scenario->errors();
//   if (wrong.empty() || wrong.front().path.empty()) std::abort();  // "mdl": did you mean 'model'?
#pragma once

#include "core/error.h"
#include "core/result.h"
