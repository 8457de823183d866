// SPDX-License-Identifier: Apache-2.0
// The target's own program accepts what is exported: flags and keys of its sources
// (tests/data/recipes), shells and parsers that are on this machine.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "core/temporary_folder.h"
#include "core/text_file.h"
#include "places.h"
#include "random_scenario.h"
#include "recipes/deepspeed.h"
#include "recipes/export.h"
#include "recipes/megatron.h"
#include "recipes/refusals.h"
#include "recipes/shell_script.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

using nlohmann::json;
using testing::source_folders;

constexpr int kDraws = 60;

json accepted(const char* name) {
  const auto text = read_text_file(source_folder() + "/tests/data/recipes/" + name);
  return json::parse(text.value_or("{}"));
}

// Seeded scenarios of a framework that this target can launch. What it cannot is refused with a
// reason, and is not most of them.
std::vector<Exported> exports(const char* framework, const std::string& target,
                              const ExportOptions& options = {}) {
  testing::ScenarioDraw draw(7);
  std::vector<Exported> out;
  for (int i = 0; i < kDraws; ++i) {
    const auto drawn = draw.draw(framework);
    auto exported = export_scenario(drawn.scenario, drawn.text, target, options, source_folders());
    if (!exported) {
      EXPECT_TRUE(testing::says_why(exported.error())) << to_string(exported.error());
      continue;
    }
    EXPECT_FALSE(exported->files.empty()) << drawn.text;
    if (!exported->files.empty()) out.push_back(std::move(*exported));
  }
  EXPECT_GE(out.size(), kDraws / 3U) << framework << " to " << target;
  return out;
}

void expect_accepted(const std::string& flag, const std::vector<std::string>& values,
                     const json& flags) {
  ASSERT_TRUE(flags.contains(flag)) << flag;
  const int count = flags[flag]["values"];
  EXPECT_TRUE(count < 0 || static_cast<int>(values.size()) == count) << flag;
  if (!flags[flag].contains("choices")) return;
  for (const std::string& value : values) {
    const json& choices = flags[flag]["choices"];
    EXPECT_NE(std::find(choices.begin(), choices.end(), value), choices.end()) << flag << value;
  }
}

TEST(Accepted, MegatronKnowsEveryFlagWithAsManyValues) {
  const json flags = accepted("megatron_flags.json");
  std::set<std::string> seen;
  for (const Exported& exported : exports("megatron", "megatron")) {
    const auto script = read_shell(exported.files[0].text, {});
    const auto& words = script.commands.back();
    auto at = std::find_if(words.begin(), words.end(),
                           [](const std::string& word) { return word.ends_with(".py"); });
    ASSERT_NE(at, words.end());
    for (++at; at != words.end();) {
      const std::string flag = *at++;
      std::vector<std::string> values;
      while (at != words.end() && !at->starts_with("--")) values.push_back(*at++);
      expect_accepted(flag, values, flags);
      seen.insert(flag);
    }
  }
  EXPECT_GE(seen.size(), 50u);
}

void expect_keys(const json& object, const json& known, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    EXPECT_NE(std::find(known.begin(), known.end(), key), known.end()) << where << "." << key;
  }
}

// A section and those inside it.
void expect_fields(const json& table, const json& known, const std::string& section) {
  ASSERT_TRUE(known.contains(section)) << section;
  expect_keys(table, known[section], section);
  for (const auto& [key, inner] : table.items()) {
    if (inner.is_object()) expect_fields(inner, known, section + "." + key);
  }
}

TEST(Accepted, TorchtitanHasEveryField) {
  const json known = accepted("torchtitan_keys.json");
  for (const Exported& exported : exports("fsdp", "torchtitan")) {
    const auto text = toml_to_json(exported.files[0].text, "exported");
    ASSERT_TRUE(text) << to_string(text.error());
    const json settings = json::parse(*text);
    for (const auto& [section, table] : settings.items()) {
      expect_fields(table, known, section);
    }
  }
}

TEST(Accepted, DeepSpeedHasEveryKeyAndItsBatchRuleHolds) {
  const json known = accepted("deepspeed_keys.json");
  for (const Exported& exported : exports("deepspeed", "deepspeed")) {
    json settings = json::parse(exported.files[0].text);
    settings.erase("stepcast");
    expect_keys(settings, known[""], "");
    for (const auto& [section, table] : settings.items()) {
      if (table.is_object()) expect_keys(table, known[section], section);
    }
    const std::int64_t each = settings["train_micro_batch_size_per_gpu"].get<std::int64_t>() *
                              settings["gradient_accumulation_steps"].get<std::int64_t>();
    EXPECT_EQ(settings["train_batch_size"].get<std::int64_t>() % each, 0);
  }
}

bool has_program(const std::string& probe) {
  return std::system((probe + " >/dev/null 2>&1").c_str()) == 0;
}

// Runs `command FILE` on the first `count` scripts. Whatever the command prints is the failure.
void expect_program_accepts(const std::string& command, const std::vector<Exported>& all,
                            std::size_t count, const char* name) {
  ASSERT_GE(all.size(), count);
  const testing::TemporaryFolder folder;
  for (std::size_t i = 0; i < count; ++i) {
    folder.write(name, all[i].files[0].text);
    ASSERT_EQ(std::system((command + " " + (folder / name) + " >&2").c_str()), 0)
        << all[i].files[0].text;
  }
}

TEST(Accepted, BashReadsTheScripts) {
  for (const auto target : {"torchrun", "slurm"}) {
    for (const char* framework : {"megatron", "deepspeed", "fsdp"}) {
      expect_program_accepts("bash -n", exports(framework, target), 4, "script.sh");
    }
  }
}

TEST(Accepted, ShellcheckFindsNothing) {
  if (!has_program("shellcheck --version")) {
    GTEST_SKIP() << "scripts/install-deps.sh --all installs shellcheck";
  }
  for (const auto target : {"torchrun", "slurm"}) {
    for (const char* framework : {"megatron", "deepspeed", "fsdp"}) {
      // SC2016: the node's rank is expanded where the task runs.
      expect_program_accepts("shellcheck --exclude=SC2016", exports(framework, target), 2,
                             "script.sh");
    }
  }
}

TEST(Accepted, PythonReadsTheToml) {
  expect_program_accepts("python3 -c 'import sys,tomllib; tomllib.load(open(sys.argv[1],\"rb\"))'",
                         exports("fsdp", "torchtitan"), 4, "torchtitan.toml");
}

// Required fields of the two kinds, and that every pod asks for its node's GPUs.
TEST(Accepted, ManifestsAreTwoDocumentsWithAPodPerNode) {
  for (const PodJob kind : {PodJob::kJobSet, PodJob::kPyTorchJob}) {
    for (const Exported& exported : exports("megatron", "kubernetes", {kind})) {
      const auto documents = YAML::LoadAll(exported.files[0].text);
      ASSERT_EQ(documents.size(), 2u);
      EXPECT_EQ(documents[0]["kind"].as<std::string>(), "ConfigMap");
      const YAML::Node spec = documents[1]["spec"];
      if (kind == PodJob::kJobSet) {
        const YAML::Node job = spec["replicatedJobs"][0]["template"]["spec"];
        EXPECT_EQ(job["parallelism"].as<int>(), job["completions"].as<int>());
        EXPECT_EQ(job["completionMode"].as<std::string>(), "Indexed");
        const YAML::Node container = job["template"]["spec"]["containers"][0];
        EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"].as<int>(), 8);
      } else {
        const YAML::Node replicas = spec["pytorchReplicaSpecs"];
        EXPECT_EQ(spec["nprocPerNode"].as<std::string>(), "8");
        EXPECT_EQ(replicas["Master"]["replicas"].as<int>(), 1);
        EXPECT_EQ(replicas["Master"]["template"]["spec"]["containers"][0]["name"].as<std::string>(),
                  "pytorch");
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
