// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/attempts.h"

#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;

// Each process that measures opens the journal anew.
template <typename Body>
void in_a_process(const TemporaryFolder& folder, const Body& body) {
  auto journal = Journal::open(folder / "j", {{"gpu", "Test"}});
  ASSERT_TRUE(journal) << to_string(journal.error());
  Attempts attempts(*journal);
  body(attempts, *journal);
}

TEST(Attempts, APointThatFailedIsNotTriedAgainByAnyProcess) {
  const TemporaryFolder folder;
  in_a_process(folder, [](Attempts& attempts, Journal&) {
    EXPECT_FALSE(attempts.why_not("gemm"));
    ASSERT_TRUE(attempts.begin("gemm"));
    ASSERT_TRUE(attempts.fail("gemm", "an illegal memory access"));
  });
  in_a_process(folder, [](Attempts& attempts, Journal&) {
    EXPECT_EQ(attempts.why_not("gemm"), "an illegal memory access");
    EXPECT_FALSE(attempts.why_not("another"));
  });
}

TEST(Attempts, APointDuringWhichTheProcessEndedIsTriedOnceMore) {
  const TemporaryFolder folder;
  for (int process = 0; process < Attempts::kMost; ++process) {
    in_a_process(folder, [](Attempts& attempts, Journal&) {
      EXPECT_FALSE(attempts.why_not("gemm"));
      ASSERT_TRUE(attempts.begin("gemm"));
    });
  }
  in_a_process(folder, [](Attempts& attempts, Journal&) {
    EXPECT_EQ(attempts.why_not("gemm"), "its process has ended 2 times while it was measured");
  });
}

TEST(Attempts, ArePointsOfTheirOwnInTheJournal) {
  const TemporaryFolder folder;
  in_a_process(folder, [](Attempts& attempts, Journal& journal) {
    ASSERT_TRUE(attempts.begin("gemm"));
    EXPECT_EQ(journal.find("gemm"), nullptr);  // not measured
    ASSERT_TRUE(journal.append({"gemm", {}, "{}"}));
    EXPECT_NE(journal.find("gemm"), nullptr);
  });
}

}  // namespace
}  // namespace stepcast
