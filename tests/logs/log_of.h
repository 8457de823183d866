// SPDX-License-Identifier: Apache-2.0
// The log that a text is, which the test fails without.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "logs/training_log.h"

namespace stepcast {

inline TrainingLog log_of(const std::string& text) {
  auto log = training_log_of(text, "run.log");
  if (!log) ADD_FAILURE() << to_string(log.error());
  return log ? std::move(*log) : TrainingLog{};
}

}  // namespace stepcast
