// SPDX-License-Identifier: Apache-2.0
// Figures that people take for granted, and words that they try first.
#include "cli/program.h"

namespace stepcast::testing {
namespace {

// Half of the attention of a million tokens is masked: with all of it the MFU would be 91 %.
TEST(FirstWords, TheMfuOfLongSequencesIsCausal) {
  const Outcome out = run({"predict", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x8",
                           "--global-batch", "8", "--seq", "1M", "--cp", "64"});
  ASSERT_NE(out.out, "") << out.error;  // it does not fit, and is forecast all the same
  const std::size_t at = out.out.find("MFU ");
  ASSERT_NE(at, std::string::npos);
  const double causal = std::strtod(out.out.c_str() + at + 4, nullptr);
  const std::size_t full_at = out.out.find("with full attention MFU ");
  ASSERT_NE(full_at, std::string::npos) << out.out;
  const double full = std::strtod(out.out.c_str() + full_at + 24, nullptr);
  EXPECT_GT(full, 80);
  EXPECT_LT(causal, 0.6 * full);
}

TEST(FirstWords, AProvidersClusterHasItsPriceOrNone) {
  const Outcome out = run({"predict", "--model", "llama-3.1-8b", "--cluster", "azure-nd-gb200-v6",
                           "--gpus", "4", "--global-batch", "64", "--tokens", "1T"});
  ASSERT_EQ(out.code, 0) << out.error;
  EXPECT_TRUE(has(out.out, "no price of Azure for gb200-186g is known here")) << out.out;
  EXPECT_TRUE(has(out.out, "--price")) << out.out;
}

TEST(FirstWords, NothingIsCertain) {
  for (const char* deadline : {"5000d", "1d"}) {
    const Outcome out = run(predict_words({"--tokens", "1T", "--deadline", deadline}));
    ASSERT_EQ(out.code, 0) << out.error;
    EXPECT_TRUE(has(out.out, "chance ")) << out.out;
    EXPECT_FALSE(has(out.out, "chance 100 %") || has(out.out, "chance 0 %")) << out.out;
  }
}

TEST(FirstWords, APlanAcrossClustersEndsWithThreeLines) {
  const Outcome out = run({"plan", "--model", "gpt3-1.3b", "--seq", "1024", "--global-batch", "16",
                           "--recompute", "none", "--clusters", "dgx-h100,dgx-a100-80g", "--gpus",
                           "4..8", "--tokens", "1B", "--quiet"});
  ASSERT_EQ(out.code, 0) << out.error;
  const std::size_t at = out.out.find("\nIn short\n");
  ASSERT_NE(at, std::string::npos) << out.out;
  const std::string last = out.out.substr(at + 10);
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 3) << last;
  EXPECT_TRUE(has(last, "  rent: ")) << last;
  EXPECT_TRUE(has(last, "  it takes ") && has(last, ", central 90 %")) << last;
  EXPECT_TRUE(has(last, "  risks: ")) << last;
  for (const char* riddle : {"near ties left", "first answers", "dearer"}) {
    EXPECT_FALSE(has(out.out, riddle)) << out.out;
  }
}

TEST(FirstWords, AllClustersAreMetWithTheWordToType) {
  const Outcome out = run({"plan", "--model", "gpt3-1.3b", "--global-batch", "16", "--clusters",
                           "all", "--gpus", "8-64"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "stepcast show prices")) << out.error;
}

}  // namespace
}  // namespace stepcast::testing
