// SPDX-License-Identifier: Apache-2.0
#include "core/shared_library.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TEST(SharedLibrary, FindsFunctions) {
  SharedLibrary library("mathematics", "libm.so.6", "2");
  double (*cosine)(double) = nullptr;
  library.need(cosine, "cos");
  EXPECT_FALSE(library.why_not());
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, SaysWhichIsNotThere) {
  SharedLibrary library("NCCL", "libno-such-library.so.7", "2.19");
  void (*function)() = nullptr;
  library.need(function, "ncclSend");
  EXPECT_EQ(function, nullptr);
  ASSERT_TRUE(library.why_not());
  EXPECT_EQ(library.why_not()->rfind("no NCCL: libno-such-library.so.7", 0), 0U);
}

TEST(SharedLibrary, SaysWhichNeededFunctionIsMissingFirst) {
  SharedLibrary library("mathematics", "libm.so.6", "99");
  void (*function)() = nullptr;
  library.look_for(function, "may_be_missing");
  EXPECT_FALSE(library.why_not());
  library.need(function, "no_such_function");
  library.need(function, "nor_this");
  EXPECT_EQ(library.why_not(),
            "no mathematics: libm.so.6 has no no_such_function: 99 or later is needed");
}

}  // namespace
}  // namespace stepcast
