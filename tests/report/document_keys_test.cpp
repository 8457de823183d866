// SPDX-License-Identifier: Apache-2.0
#include "report/document_keys.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/each.h"

namespace stepcast {
namespace {

// A page of a format is made of these rows, so a key without words would be a hole in it.
TEST(DocumentKeys, HaveWordsAndDifferentPaths) {
  std::set<std::string> paths;
  for (const DeclaredKey& key : each_of(document_keys())) {
    EXPECT_FALSE(key.words.empty()) << key.path;
    EXPECT_FALSE(key.accepts.empty()) << key.path;
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
  }
  for (const char* path : {"suite.cases.convention.peak", "prices.as_of", "rank.numerics",
                           "validation_baseline.machine.cores"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

}  // namespace
}  // namespace stepcast
