// SPDX-License-Identifier: Apache-2.0
// The published tables of kernels and the accelerators that they name, read once.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "places.h"

namespace stepcast::testing {

inline Accelerator accelerator(const std::string& name) {
  const auto found = find_accelerator(name, source_folder() + "/topologies");
  EXPECT_TRUE(found) << to_string(found.error());
  return *found;
}

inline const Published& published() {
  static const Result<Published> tables = read_published(source_folder() + "/calibrate/published");
  EXPECT_TRUE(tables) << to_string(tables.error());
  return *tables;
}

}  // namespace stepcast::testing
