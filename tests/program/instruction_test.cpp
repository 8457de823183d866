// SPDX-License-Identifier: Apache-2.0
#include "program/instruction.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast {
namespace {

constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);

std::vector<std::int64_t> begins(const std::vector<ElementRange>& ranges) {
  std::vector<std::int64_t> out;
  for (const ElementRange& range : ranges) out.push_back(range.begin);
  return out;
}

Instruction whole_pass() {
  Instruction out{Stream::kCompute, "backward", RunPass{{Pass::kBackward, 0, 0}, 0, 3}};
  for (const InstructionIndex wait : {9, 2, 7, 4, 5}) out.wait_for(wait);
  out.hold_gradients({10, 20}, 40);
  out.free_gradients({30, 40}, 20);
  out.free_parameters({50, 60}, 5);
  return out;
}

// Whatever a part carries, all parts together carry it once.
TEST(Instruction, PartsCarryWhatTheWholeCarried) {
  const Instruction whole = whole_pass();
  Instruction first{whole.stream, whole.name, whole.work}, last = first;
  take_begin(first, whole);
  take_end(last, whole);
  EXPECT_EQ(first.waits, whole.waits);
  EXPECT_TRUE(last.waits.empty());
  EXPECT_EQ(first.birth[kBuffers], 40);
  EXPECT_EQ(total(first.death), 0);
  EXPECT_EQ(total(last.birth), 0);
  EXPECT_EQ(last.death[kBuffers], 25);
  EXPECT_EQ(begins(first.windows.get().holds_gradients), std::vector<std::int64_t>{10});
  EXPECT_TRUE(first.windows.get().frees_gradients.empty());
  EXPECT_EQ(first.windows.get().frees_parameters.size(), 0);
  EXPECT_TRUE(last.windows.get().holds_gradients.empty());
  EXPECT_EQ(begins(last.windows.get().frees_gradients), std::vector<std::int64_t>{30});
  EXPECT_EQ(last.windows.get().frees_parameters.front().begin, 50);
}

TEST(Instruction, CopiesHaveWindowsOfTheirOwn) {
  const Instruction whole = whole_pass();
  Instruction copy = whole;
  copy.windows.make().holds_gradients.clear();
  EXPECT_EQ(begins(whole.windows.get().holds_gradients), std::vector<std::int64_t>{10});
  copy = whole;
  EXPECT_EQ(begins(copy.windows.get().holds_gradients), std::vector<std::int64_t>{10});
}

TEST(Instruction, WaitsFollowAListThatIsWrittenAnew) {
  Instruction what = whole_pass();
  const std::vector<InstructionIndex> now = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18};
  what.waits.renumber(now);
  EXPECT_EQ((std::vector<InstructionIndex>{what.waits.begin(), what.waits.end()}),
            (std::vector<InstructionIndex>{18, 4, 14, 8, 10}));
}

}  // namespace
}  // namespace stepcast
