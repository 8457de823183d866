// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include "core/limits.h"

namespace stepcast {
namespace {

// Each part is cut before the character that would not be whole: e with an accent has two bytes.
TEST(ErrorText, ALongPartIsCutBetweenTwoCharacters) {
  std::string path(kLongestErrorPart - 1, 'k');
  path += "\xC3\xA9 and more";
  const Error error{ErrorCode::kUnknownKey, "is not a known key", "a.json", path, "one of b"};
  EXPECT_EQ(to_string(error), "a.json: " + std::string(kLongestErrorPart - 1, 'k') +
                                  "...: is not a known key (one of b)");
}

TEST(ErrorText, NoNearWordIsLookedForOfOneThatNobodyTypes) {
  const std::string word(kLongestWord, 'a');
  EXPECT_EQ(did_you_mean(word, {word}), "did you mean '" + word + "'?");
  EXPECT_EQ(did_you_mean(word + "a", {word + "a"}), "");
  EXPECT_EQ(did_you_mean(word, {word + "a"}), "");
}

}  // namespace
}  // namespace stepcast
