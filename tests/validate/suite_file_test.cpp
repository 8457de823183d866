// SPDX-License-Identifier: Apache-2.0
#include "validate/suite_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/temporary_folder.h"
#include "core/text/escape.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using stepcast::testing::source_folders;
using stepcast::testing::TemporaryFolder;

Json scenario() {
  return Json::parse(R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
    "training": {"global_batch": 128}})");
}

// A case as a log makes it.
Json logged(double step_time_s) {
  return {{"id", "8b"},
          {"source", "Megatron-LM's log run.log"},
          {"tags", std::vector<std::string>{"megatron-lm"}},
          {"assumed", Json::array()},
          {"notes", "Median of 95 steps; lines none is left out."},
          {"measured", {{"step_time_s", step_time_s}, {"step_time_spread", 0.004}, {"steps", 95}}},
          {"scenario", scenario()}};
}

// The only case of a suite of `known`, with `one` added.
Json after_adding(const Json& known, Json one) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.json";
  Json suite{{"stepcast_suite", 1}, {"name", "runs"}};
  suite["cases"] = Json::array_of({known});
  std::ofstream(file) << json_text(suite);
  auto opened = SuiteFile::open(file);
  EXPECT_TRUE(opened) << to_string(opened.error());
  opened->add(std::move(one), source_folders());
  const auto text = opened->text();
  EXPECT_TRUE(text) << to_string(text.error());
  const Json out = Json::parse(text->text());
  EXPECT_EQ(out["cases"].size(), 1u);
  return *out["cases"].begin();
}

TEST(SuiteFile, KeepsWhatPeopleWroteOfACase) {
  Json known = logged(7);
  known["tags"] = std::vector<std::string>{"nightly", "megatron-lm"};
  known["assumed"] = std::vector<std::string>{"training.framework"};
  known["notes"] = "the runs before the new image";
  known["convention"] = Json{{"attention", "causal"}, {"memory", "device"}};
  known["tolerance"] = Json{{"step_time", 0.5}};
  const Json out = after_adding(known, logged(8));
  EXPECT_EQ(out["tags"], known["tags"]);
  EXPECT_EQ(out["assumed"], known["assumed"]);
  EXPECT_EQ(out["notes"], known["notes"]);
  EXPECT_EQ(out["tolerance"], known["tolerance"]);
  // The new log says nothing of memory: what it was before is not what this would be.
  EXPECT_EQ(out["convention"], (Json{{"attention", "causal"}}));
  EXPECT_EQ(out["earlier"].size(), 1u);
}

TEST(SuiteFile, NotesOfALogAreThoseOfItsLastRun) {
  Json now = logged(8);
  now["notes"] = "Median of 40 steps; lines none is left out.";
  EXPECT_EQ(after_adding(logged(7), now)["notes"], now["notes"]);
}

// Suites of before told neither spread nor steps.
TEST(SuiteFile, TheLogThatMadeACaseIsNoRunBeforeIt) {
  Json known = logged(7);
  known["measured"] = Json{{"step_time_s", 7.0}};
  const Json again = after_adding(known, logged(7));
  EXPECT_FALSE(again.contains("earlier"));
  EXPECT_EQ(again["measured"]["steps"], 95);
  EXPECT_TRUE(after_adding(known, logged(7.1)).contains("earlier"));
  Json other = logged(7);
  other["source"] = "Megatron-LM's log run-2.log";
  EXPECT_TRUE(after_adding(known, other).contains("earlier"));
}

}  // namespace
}  // namespace stepcast
