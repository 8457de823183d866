// SPDX-License-Identifier: Apache-2.0
// A search that was cut off does not know whether a layout fits. The clock is moved, so that the
// time is over at one moment of the search after the other.
#include "faults/fault.h"

namespace stepcast::testing {
namespace {

using Words = std::vector<std::string>;

// The words for it in tables, JSON and notes, for layouts, plans, rungs and offers.
const Words kNothingFits{"o layout fits", "othing fits",      "o rung ",       "o plan fits",
                         "o offer fits",  "one of them fits", "o cluster fits"};

// How the search ends when its clock jumps at each of some readings. What none of them may say is
// that nothing fits; the last jump comes after the end.
struct Cuts {
  int cut = 0, whole = 0;
};

Cuts cut_off_everywhere(const Words& words) {
  Cuts out;
  const Fault uncut("");
  const Outcome whole = run(words);
  EXPECT_EQ(whole.code, 0) << whole.error;
  const long readings = uncut.count("clock");
  EXPECT_GT(readings, 3);
  const long step = std::max(1L, readings / 12);
  for (long number = 1; number <= readings + step; number += step) {
    const Environment jump("STEPCAST_FAULT", "clock:" + std::to_string(number) + ":100000");
    const Outcome result = run(words);
    EXPECT_EQ(result.code, 0) << number << ": " << result.error << result.out;
    for (const std::string& words_of_it : kNothingFits) {
      EXPECT_FALSE(has(result.out, words_of_it)) << number << ": " << result.out;
      EXPECT_FALSE(has(result.error, words_of_it)) << number << ": " << result.error;
    }
    (has(result.error, "stopped: ") || has(result.out, "\"proven\": false") ? out.cut
                                                                            : out.whole)++;
  }
  return out;
}

Words plan_words(const Words& more, const std::string& batch = "16") {
  Words out{"plan", "--model",      "gpt2-xl", "--global-batch", batch, "--seq",
            "1024", "--time-limit", "1000",    "--threads",      "1",   "--replays",
            "2"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(CutOffSearch, APlanNeverSaysThatNothingFits) {
  const Cuts table = cut_off_everywhere(plan_words({"--cluster", "dgx-a100-80gx1"}));
  EXPECT_GT(table.cut, 0);
  const Cuts json =
      cut_off_everywhere(plan_words({"--cluster", "dgx-a100-80gx1", "--format", "json"}));
  EXPECT_GT(json.cut, 0);
}

TEST(CutOffSearch, AnswersToWhyNotSayThatTheySearchedTooShort) {
  const Cuts cuts =
      cut_off_everywhere(plan_words({"--cluster", "dgx-a100-80gx1", "--why-not", "tp=2"}));
  EXPECT_GT(cuts.cut, 0);
}

TEST(CutOffSearch, OffersNeverSayThatNothingFits) {
  const Words offers{"--clusters", "dgx-a100-80g,dgx-h100", "--gpus", "8"};
  const Cuts cuts = cut_off_everywhere(plan_words(offers));
  EXPECT_GT(cuts.cut, 0);
}

TEST(CutOffSearch, AnAdviceNeverSaysThatNothingFits) {
  const Cuts cuts = cut_off_everywhere(plan_words({"--cluster", "dgx-a100-80gx1", "--advise"}));
  EXPECT_GT(cuts.cut, 0);
}

// One layout, every key of which is stated: there is no search between whose steps the limit could
// be looked at. Its replay ends.
TEST(CutOffSearch, OneFixedLayoutKeepsTheTimeLimitToo) {
  const Words words =
      plan_words({"--cluster", "dgx-a100-80gx1", "--format", "json", "--fix",
                  "tp=1,pp=8,dp=1,cp=1,ep=1,micro_batch=1,zero=0,schedule=1f1b,virtual_stages=1,"
                  "recompute=none"},
                 "4096");
  const Fault uncut("");
  const Outcome whole = run(words);
  ASSERT_EQ(whole.code, 0) << whole.error;
  ASSERT_EQ(whole.json()["plans"].size(), 1u);
  // The replay of so many micro-batches asks for the time now and then.
  const long last = uncut.count("clock") - 3;
  ASSERT_GT(last, 10);
  const Environment jump("STEPCAST_FAULT", "clock:" + std::to_string(last / 2) + ":100000");
  const Outcome cut = run(words);
  EXPECT_EQ(cut.code, 0) << cut.error;
  EXPECT_EQ(cut.json()["plans"].size(), 0u);
  EXPECT_EQ(cut.json()["proven"], false);
  EXPECT_TRUE(has(cut.error, "stopped: nothing that fits was found so far")) << cut.error;
}

}  // namespace
}  // namespace stepcast::testing
