// SPDX-License-Identifier: Apache-2.0
// Keys are declared once (layout/keys.h): what the rows promise holds for every one of them.
#include "layout/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "core/each.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

Stated read(const std::string& text, std::span<const Key> keys) {
  Stated stated;
  const auto document = JsonDocument::parse(text, "object.json");
  read_keys((*document)->root(), keys, stated);
  EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
  return stated;
}

Scenario resolved(const Stated& stated) {
  Model model;
  model.max_positions = 2048;
  Cluster cluster;
  cluster.spec.gpus = 16;
  return resolve(model, cluster, stated);
}

TEST(Keys, EachStandsOnceWithItsHelpAndWhatItAccepts) {
  std::set<std::string> paths, flags;
  for (const Key* key : each_of(keys())) {
    EXPECT_TRUE(paths.insert(key->path).second) << key->path;
    EXPECT_STRNE(key->help, "") << key->path;
    EXPECT_FALSE(key->type->accepts().empty()) << key->path;
    if (key->flag.name != nullptr) {
      EXPECT_TRUE(flags.insert(key->flag.name).second) << key->path;
    }
  }
}

TEST(Keys, OnlyWhatAFileStatesIsMarked) {
  const Stated stated = read(R"({"pp": 2, "overlap": {"tp": true}})", layout_keys());
  for (const Key* key : each_of(keys())) {
    const std::string path = key->path;
    EXPECT_EQ(stated.has(path), path == "layout.pp" || path == "layout.overlap.tp") << path;
  }
  EXPECT_TRUE(stated.layout.overlap.tp);
}

// Keys that were written are read again, and then nothing is left to a default.
TEST(Keys, AllThatIsShownIsReadAsItWas) {
  Stated stated = read(R"({"tp": 4, "pp": 2, "schedule": "interleaved", "virtual_stages": 2,
      "recompute": {"mode": "full", "every": 2}, "shard_group": 1, "order": "dp-tp-cp-ep-pp"})",
                       layout_keys());
  stated.training = read(R"({"global_batch": 8, "mode": "lora"})", training_keys()).training;
  const Scenario scenario = resolved(stated);
  Stated again = read(json_text(write_keys(scenario, layout_keys())), layout_keys());
  const Stated training = read(json_text(write_keys(scenario, training_keys())), training_keys());
  again.training = training.training;
  again.rules = training.rules;
  again.keys |= training.keys;
  const Scenario second = resolved(again);
  EXPECT_EQ(to_json(second), to_json(scenario));
  AtLeast plain(10);
  for (const Key* key : each_of(keys())) {
    if (key->shown == nullptr) {
      ++plain;
      EXPECT_TRUE(again.has(key->path)) << key->path;
    }
  }
}

// Launch files are written from it, and come back as they were.
TEST(Keys, ListsAreShownInTheOrderInWhichTheyWereStated) {
  Stated stated =
      read(R"({"recompute": {"mode": "selective", "modules": ["mlp", "core_attention"]}})",
           layout_keys());
  stated.training = read(R"({"global_batch": 8, "mode": "lora", "lora_targets": ["mlp", "qkv"]})",
                         training_keys())
                        .training;
  const Scenario scenario = resolved(stated);
  EXPECT_EQ(json_text(write_keys(scenario, layout_keys())["recompute"]["modules"]),
            R"(["mlp","core_attention"])");
  EXPECT_EQ(json_text(write_keys(scenario, training_keys())["lora_targets"]), R"(["mlp","qkv"])");
}

// A default that other keys decide gives way to a stated value.
TEST(Keys, AStatedValueOutlivesItsDefault) {
  Stated stated = read(R"({"overlap": {"pp": true}, "zero": 0, "etp": 2})", layout_keys());
  const Stated training =
      read(R"({"global_batch": 8, "compile": false, "bucket_elements": 7})", training_keys());
  stated.training = training.training;
  stated.rules = training.rules;
  stated.keys |= training.keys;
  const Scenario scenario = resolved(stated);
  EXPECT_TRUE(scenario.layout.overlap.pp);
  EXPECT_EQ(scenario.layout.zero, 0);
  EXPECT_EQ(scenario.layout.etp, 2);
  EXPECT_FALSE(scenario.training.compile);
  EXPECT_EQ(scenario.rules.bucket_elements, 7);
  EXPECT_EQ(scenario.rules.vocab_multiple, 128);  // what is no key stays the framework's
}

// A search that opens a key again leaves what stood there before.
TEST(Keys, WhatASearchPutsItFindsAgain) {
  const Scenario prefix = resolved(read(R"({"tp": 2})", layout_keys()));
  AtLeast values(10);
  for (const Key* key : each_of(keys())) {
    if (key->search == nullptr) continue;
    for (const std::int64_t value : key->search->values(prefix)) {
      ++values;
      Settings settings;
      key->search->put(settings, value);
      EXPECT_EQ(key->search->of(settings.layout), value) << key->path;
    }
  }
}

}  // namespace
}  // namespace stepcast
