// SPDX-License-Identifier: Apache-2.0
#include "layout/override.h"

#include <gtest/gtest.h>

#include "core/json_tree.h"

namespace stepcast {
namespace {

TEST(Override, ReadsTheValueAsJsonElseAsText) {
  SortedJson document = SortedJson::object();
  EXPECT_TRUE(apply_override(document, "layout.tp", "8").empty());
  EXPECT_TRUE(apply_override(document, "layout.schedule", "1f1b").empty());
  EXPECT_TRUE(apply_override(document, "layout.overlap.tp", "true").empty());
  EXPECT_TRUE(apply_override(document, "layout.stage_layers", "[1, 2]").empty());
  EXPECT_TRUE(apply_override(document, "model", "\"llama-7b\"").empty());
  EXPECT_EQ(document,
            SortedJson::parse(R"({"model": "llama-7b", "layout": {"tp": 8, "schedule": "1f1b",
      "overlap": {"tp": true}, "stage_layers": [1, 2]}})"));
}

// 2.30 would be the number 2.3.
TEST(Override, LeavesAVersionAText) {
  SortedJson document;
  EXPECT_TRUE(apply_override(document, "software.nccl", "2.30").empty());
  EXPECT_EQ(document["software"]["nccl"], "2.30");
}

TEST(Override, ReplacesWhatIsThereAndNullRemoves) {
  SortedJson document = SortedJson::parse(R"({"layout": {"tp": 2, "pp": 4}})");
  EXPECT_TRUE(apply_override(document, "layout.tp", "4").empty());
  EXPECT_TRUE(apply_override(document, "layout.pp", "null").empty());
  EXPECT_EQ(document, SortedJson::parse(R"({"layout": {"tp": 4, "pp": null}})"));
}

TEST(Override, RefusesPathsThatLeadNowhere) {
  const SortedJson before = SortedJson::parse(R"({"model": "llama-7b", "layout": {"tp": 2}})");
  for (const char* path :
       {"", ".", "layout.", ".tp", "layout..tp", "model.layers", "layout.tp.deep", "new..key"}) {
    SortedJson document = before;
    const Errors errors = apply_override(document, path, "8");
    ASSERT_EQ(errors.size(), 1u) << path;
    EXPECT_EQ(errors.front().path, path);
    EXPECT_EQ(document, before) << path;
  }
}

TEST(Override, RefusesHalfAnObject) {
  SortedJson document = SortedJson::object();
  const Errors errors = apply_override(document, "layout", "{\"tp\": ");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.front().code, ErrorCode::kSyntax);
  EXPECT_EQ(document, SortedJson::object());
}

// A quote has 60 bytes of a value or a path, so that the reason is never cut from the error.
TEST(Override, QuotesTheEndsAloneOfALongValueOrPath) {
  const std::string quote = std::string(37, 'x') + "..." + std::string(19, 'x');
  SortedJson document = SortedJson::object();
  const Errors half = apply_override(document, "layout", "[" + std::string(100000, 'x'));
  ASSERT_EQ(half.size(), 1u);
  EXPECT_TRUE(half.front().message.ends_with(": [" + quote)) << half.front().message;
  const Errors path = apply_override(document, "." + std::string(100000, 'x'), "8");
  ASSERT_EQ(path.size(), 1u);
  EXPECT_EQ(path.front().message, "'." + quote + "' is not a key path");
  const Errors bytes = apply_override(document, "name", "x\xFF" + std::string(100000, 'x'));
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_TRUE(bytes.front().message.ends_with("x' is not UTF-8")) << bytes.front().message;
  EXPECT_LT(bytes.front().message.size(), 100u);
}

}  // namespace
}  // namespace stepcast
