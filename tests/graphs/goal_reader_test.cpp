// SPDX-License-Identifier: Apache-2.0
#include "graphs/goal_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/each.h"
#include "core/seeded_random.h"

namespace stepcast {
namespace {

const std::string kSchedule = R"(num_ranks 2

rank 0 {
l1: calc 100 cpu 1
l2: send 8b to 1 tag 4   // a message
l2 requires l1
l3: calc 5
l3 irequires l2
}
/* the other
   rank */
rank 1 {
l1: recv 8b from 0 tag 4
}
)";

std::string refusal(const std::string& text) {
  const auto out = goal_of(text, "app.goal");
  return out ? "" : to_string(out.error());
}

TEST(GoalReader, ReadsOperationsAndWhatTheyRequire) {
  const auto graph = goal_of(kSchedule, "app.goal");
  ASSERT_TRUE(graph) << to_string(graph.error());
  ASSERT_EQ(graph->ranks.size(), 2U);
  const RankGraph& rank = graph->ranks[0];
  ASSERT_EQ(rank.nodes.size(), 3U);
  EXPECT_NEAR(rank.nodes[0].duration.value(), 100e-9, 1e-15);
  EXPECT_EQ(rank.nodes[0].lane, 1);
  EXPECT_EQ(rank.nodes[0].id, 4U);  // its line
  EXPECT_EQ(rank.nodes[1].kind, NodeKind::kSend);
  EXPECT_EQ(rank.nodes[1].tag, 4);
  ASSERT_EQ(rank.dependencies_of(rank.nodes[1]).size(), 1U);
  EXPECT_FALSE(rank.dependencies_of(rank.nodes[1])[0].on_start);
  EXPECT_TRUE(rank.dependencies_of(rank.nodes[2])[0].on_start);
  EXPECT_EQ(rank.dependencies_of(rank.nodes[2])[0].node, 1);
  EXPECT_EQ(graph->ranks[1].nodes[0].kind, NodeKind::kReceive);
}

TEST(GoalReader, NamesFileLineAndFix) {
  struct Case {
    const char* text;
    const char* error;
  };
  const std::vector<Case> cases{
      {"rank 0 {\n}", "line 1: 'rank' where num_ranks is due"},
      {"num_ranks 0", "num_ranks is 0 (1 to 131072)"},
      {"num_ranks 4000000000", "num_ranks is 4000000000"},
      {"", "has no num_ranks"},
      {"num_ranks 2\nrank 0 {\n}", "has no rank 1 of 2"},
      {"num_ranks 2\nrank 2 {\n}", "line 2: rank 2 of 2"},
      {"num_ranks 1\nrank 0 {\n}\nrank 0 {\n}", "line 4: rank 0 stands twice"},
      {"num_ranks 1\nrank 0 {\ncalc 1", "ends inside rank 0"},
      {"num_ranks 1\n/* rank 0 {\n}", "ends inside a comment"},
      {"num_ranks 1\nrank 0 {\nl1: jump 5\n}", "line 3: 'jump' is no operation"},
      {"num_ranks 1\nrank 0 {\ncalc much\n}", "line 3: calc without its time"},
      {"num_ranks 2\nrank 0 {\nrecv 8b from -1 tag 0\n}", "a receive from any rank"},
      {"num_ranks 2\nrank 0 {\nrecv 8b from 1 tag -1\n}", "a receive of any tag"},
      {"num_ranks 2\nrank 0 {\nsend 8b to 0 tag 0\n}", "a message of a rank to itself"},
      {"num_ranks 2\nrank 0 {\nsend 8b to 5 tag 0\n}", "line 3: rank 5 of 2"},
      {"num_ranks 2\nrank 0 {\nsend 8b from 1\n}", "line 3: send without its size or peer"},
      {"num_ranks 1\nrank 0 {\nl1: calc 1\nl1: calc 1\n}", "the label 'l1' stands twice"},
      {"num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l2\n}",
       "line 4: there is no 'l2' in rank 0"}};
  for (const Case& one : each_of(cases)) {
    EXPECT_NE(refusal(one.text).find(one.error), std::string::npos) << refusal(one.text);
    EXPECT_NE(refusal(one.text).find("app.goal"), std::string::npos) << refusal(one.text);
  }
}

// A label may stand behind the line that requires it.
TEST(GoalReader, RequiresALabelThatComesLater) {
  const auto graph =
      goal_of("num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l2\nl2: calc 2\n}", "g");
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->ranks[0].dependencies_of(graph->ranks[0].nodes[0])[0].node, 1);
}

TEST(GoalReader, SurvivesMutatedText) {
  SeededRandom random(7);
  int refused = 0;
  const std::string letters = "0129-{}:/*# \nbrequirscalnd_tom";
  for (int i = 0; i < 20000; ++i) {
    std::string text = kSchedule;
    for (std::int64_t changes = 1 + random.below(4); changes > 0; --changes) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())));
      if (random.below(8) == 0) {
        text.resize(at + 1);
      } else {
        text[at] = letters[static_cast<std::size_t>(
            random.below(static_cast<std::int64_t>(letters.size())))];
      }
    }
    const auto read = goal_of(text, "app.goal");
    if (!read) {
      ++refused;
      ASSERT_FALSE(to_string(read.error()).empty());
    }
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace stepcast
