// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include "core/limits.h"

namespace stepcast {
namespace {

// 2000 bytes hold the first 1332, "..." and the last 665. An e with an accent has two bytes: of the
// first one, byte 1332 is the second, and of the second one, byte 665 from the end.
TEST(ErrorText, ALongPartLosesItsMiddleBetweenTwoCharacters) {
  static_assert(kLongestErrorPart == 2000);
  const std::string e = "\xC3\xA9";
  const std::string message = "'" + std::string(1330, 'k') + e + std::string(5000, 'x') + e +
                              std::string(643, 'l') + "' is not a known word";
  const Error error{ErrorCode::kUnknownKey, message, "a.json", "model", "one of b"};
  EXPECT_EQ(to_string(error), "a.json: model: '" + std::string(1330, 'k') + "..." +
                                  std::string(643, 'l') + "' is not a known word (one of b)");
}

TEST(ErrorText, NoNearWordIsLookedForOfOneThatNobodyTypes) {
  const std::string word(kLongestWord, 'a');
  EXPECT_EQ(did_you_mean(word, {word}), "did you mean '" + word + "'?");
  EXPECT_EQ(did_you_mean(word + "a", {word + "a"}), "");
  EXPECT_EQ(did_you_mean(word, {word + "a"}), "");
}

}  // namespace
}  // namespace stepcast
