// SPDX-License-Identifier: Apache-2.0
// Export and import: what is written reads back as the scenario it was, every key of it, and the
// remarks hold only what the format has no word for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/json_tree.h"
#include "core/temporary_folder.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "layout/framework.h"
#include "layout/override.h"
#include "layout/read_scenario.h"
#include "places.h"
#include "predict/prediction.h"
#include "predict/timed_orders.h"
#include "random_scenario.h"
#include "recipes/export.h"
#include "recipes/import.h"
#include "recipes/refusals.h"
#include "recipes/two_hundred.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

using testing::says_why;
using testing::source_folders;

std::string format_of(const Exported& exported) {
  return exported.framework == "Megatron-LM" ? "megatron"
         : exported.framework == "DeepSpeed" ? "deepspeed"
                                             : "torchtitan";
}

// Compares nothing where the scenario cannot be forecast.
void expect_same_forecast(const Scenario& scenario, const Scenario& back,
                          const std::string& stated) {
  const auto document = JsonDocument::parse(stated, "drawn.json");
  if (!read_scenario(**document, source_folders())) return;
  const auto before = predict(scenario, source_folders(), {});
  const auto after = predict(back, source_folders(), {});
  ASSERT_EQ(before.has_value(), after.has_value()) << stated;
  if (!before) return;
  EXPECT_EQ(before->step_time.value(), after->step_time.value()) << stated;
  EXPECT_EQ(before->peak_device, after->peak_device) << stated;
}

// Reads the file as a user does who has nothing else.
void expect_reads_back(const Scenario& scenario, const Exported& exported, const std::string& text,
                       const std::string& stated, bool forecast = true) {
  ImportInput input;
  input.text = text_to_import(text);
  input.file = "exported";
  input.models_folder = source_folders().models;
  input.gpus = scenario.cluster.gpus();
  input.layers = scenario.model.layers;
  EXPECT_EQ(detect_format(input.text), format_of(exported));
  const ImportedScenario imported = import_text(format_of(exported), input);
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors) << stated;
  const auto document = JsonDocument::from(scenario_document(imported), "back.json");
  const auto back = read_legal_scenario(*document, source_folders());
  ASSERT_TRUE(back.has_value()) << to_string(back.error()) << stated << "\n" << text;
  EXPECT_EQ(to_json(*back), to_json(scenario)) << stated << "\n" << text;
  if (forecast) expect_same_forecast(scenario, *back, stated);
}

// Keys that a format may leave to a remark; anything else it says or refuses.
const std::set<std::string>& remarks_of(const std::string& framework) {
  static const std::set<std::string> common = {"cluster",
                                               "profile",
                                               "run",
                                               "training.no_sync",
                                               "training.software",
                                               "layout.order",
                                               "layout.overlap.pp",
                                               "training.reduce_precision",
                                               "training.bucket_elements",
                                               "training.gather_bucket_elements",
                                               "training.prefetch_units",
                                               "training.host_sync_after_p2p",
                                               "training.host_sync_at_batch",
                                               "training.scatter_gather_p2p",
                                               "training.fused_gradient_accumulation",
                                               "training.grad_precision"};
  static const auto with = [](std::initializer_list<const char*> more) {
    std::set<std::string> out = common;
    out.insert(more.begin(), more.end());
    return out;
  };
  static const std::set<std::string> megatron =
      with({"model.name", "model.rope_scaling", "model.rope_factor", "model.moe.imbalance",
            "model.moe.shared_experts", "model.moe.dense_layers", "model.moe.layer_every",
            "model.moe.layer_list", "layout.stage_layers", "layout.account_for_embedding",
            "layout.account_for_loss"});
  static const std::set<std::string> deepspeed =
      with({"model", "training.sequence_length", "training.attention", "training.compile",
            "training.cuda_graphs", "layout.sequence_parallel", "layout.recompute", "layout.ep",
            "layout.etp",
            "layout.overlap.grad_reduce", "layout.overlap.param_gather", "layout.overlap.tp",
            "layout.stage_layers", "layout.account_for_embedding", "layout.account_for_loss"});
  static const std::set<std::string> torchtitan =
      with({"model", "training.attention", "training.attention_kernel", "training.cuda_graphs",
            "training.grad_clip", "layout.sequence_parallel", "layout.overlap.grad_reduce",
            "layout.overlap.param_gather", "layout.stage_layers", "layout.account_for_embedding",
            "layout.account_for_loss", "layout.offload.optimizer", "layout.offload.parameters"});
  return framework == "megatron" ? megatron : framework == "deepspeed" ? deepspeed : torchtitan;
}

void expect_known_remarks(const Exported& exported, const std::string& framework,
                          const std::string& stated) {
  for (const Setting& remark : exported.remarks) {
    EXPECT_EQ(remarks_of(framework).count(remark.path), 1u)
        << framework << " " << remark.path << "=" << remark.value << "\n"
        << stated;
  }
}

// A target of `export`, and the frameworks whose scenarios it launches. What starts several holds
// the very settings of each, so every fifth is forecast there.
struct Format {
  const char* target;
  std::vector<std::string> frameworks;
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.target; }

class RandomRoundTrip : public ::testing::TestWithParam<Format> {};

const testing::DrawnFrom& nodes_with_all_recipes() {
  static const testing::DrawnFrom from{{{"dgx-h100", 8}, {"dgx-a100-80g", 8}, {"dgx-b200", 8}},
                                       false};
  return from;
}

// Refused by name: a key, a reason and what to do.
void expect_named(const Errors& errors, const std::string& stated) {
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, ErrorCode::kIllegal) << to_string(error) << stated;
    EXPECT_FALSE(error.path.empty()) << to_string(error) << stated;
    EXPECT_TRUE(says_why(error)) << to_string(error) << stated;
  }
}

TEST_P(RandomRoundTrip, ReadsBackAsTheScenarioItWas) {
  const Format& format = GetParam();
  testing::ScenarioDraw draw(20251122, nodes_with_all_recipes());
  int written = 0, draws = 0;
  std::set<std::string> refused;
  for (; draws < testing::kMostDraws && written < testing::kAccepted; ++draws) {
    const auto of = static_cast<std::size_t>(draws) % format.frameworks.size();
    const std::string& framework = format.frameworks[of];
    const auto drawn = draw.draw(framework);
    const auto exported =
        export_scenario(drawn.scenario, drawn.text, format.target, {}, source_folders());
    if (!exported) {
      for (const Error& error : exported.error()) refused.insert(error.path);
      expect_named(exported.error(), drawn.text);
      continue;
    }
    ++written;
    ASSERT_FALSE(exported->files.empty());
    expect_known_remarks(*exported, framework, drawn.text);
    expect_reads_back(drawn.scenario, *exported, exported->files.back().text, drawn.text,
                      format.frameworks.size() == 1 || written % 5 == 0);
    if (HasFailure()) return;
  }
  EXPECT_EQ(written, testing::kAccepted) << "of " << draws << ", refused " << SortedJson(refused);
}

INSTANTIATE_TEST_SUITE_P(Formats, RandomRoundTrip,
                         ::testing::Values(Format{"megatron", {"megatron"}},
                                           Format{"deepspeed", {"deepspeed"}},
                                           Format{"torchtitan", {"fsdp"}},
                                           Format{"torchrun", {"megatron", "deepspeed", "fsdp"}},
                                           Format{"slurm", {"megatron", "deepspeed", "fsdp"}},
                                           Format{"kubernetes", {"megatron", "deepspeed", "fsdp"}}),
                         [](const auto& format) { return std::string(format.param.target); });

// The order of passes as a table, forecast from the file as under the schedule's name.
TEST(RoundTrip, TheTableOfPassesReadsBackToTheSameForecast) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "order.csv";
  testing::DrawnFrom from = testing::all_that_forecasts();
  testing::ScenarioDraw draw(39, from);
  int written = 0, draws = 0;
  for (; draws < testing::kMostDraws && written < testing::kAccepted; ++draws) {
    const auto drawn = draw.draw(draws % 2 == 0 ? "megatron" : "fsdp");
    if (drawn.scenario.layout.pp == 1) continue;
    const auto exported =
        export_scenario(drawn.scenario, drawn.text, "schedule", {}, source_folders());
    if (!exported) {
      expect_named(exported.error(), drawn.text);
      continue;
    }
    folder.write("order.csv", exported->files.front().text);
    SortedJson stated = SortedJson::parse(drawn.text);
    stated["layout"]["schedule"] = "file:" + path;
    const auto document = JsonDocument::from(stated, "file.json");
    const auto scenario = read_scenario(*document, source_folders());
    ASSERT_TRUE(scenario.has_value()) << to_string(scenario.error()) << stated;
    ++written;
    expect_same_forecast(drawn.scenario, *scenario, json_text(stated));
    if (HasFailure()) return;
  }
  EXPECT_EQ(written, testing::kAccepted) << "of " << draws;
}

// A model that no folder has comes back from flags alone.
TEST(RoundTrip, ExpertsOfAModelWithoutANameComeBackFromMegatronsFlags) {
  const std::string stated =
      R"({"stepcast": 1, "cluster": "dgx-h100", "layout": {"ep": 8},
          "training": {"global_batch": 64, "sequence_length": 2048, "framework": "megatron"},
          "model": {"layers": 6, "hidden": 1024, "heads": 8, "vocab": 32000, "ffn": 4096,
                    "position": "rope", "max_positions": 2048,
                    "moe": {"experts": 48, "top_k": 5, "ffn": 768, "dense_layers": 1}}})";
  const auto document = JsonDocument::parse(stated, "own.json");
  const auto scenario = read_scenario(**document, source_folders());
  ASSERT_TRUE(scenario.has_value()) << to_string(scenario.error());
  const auto exported = export_scenario(*scenario, stated, "megatron", {}, source_folders());
  ASSERT_TRUE(exported.has_value()) << to_string(exported.error());
  ImportInput input;
  input.text = text_to_import(exported->files.front().text);
  input.file = "exported";
  input.gpus = scenario->cluster.gpus();
  const ImportedScenario imported = import_text("megatron", input);
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  const SortedJson experts = scenario_document(imported)["model"]["moe"];
  EXPECT_EQ(experts["experts"], 48);
  EXPECT_EQ(experts["top_k"], 5);
  EXPECT_EQ(experts["ffn"], 768);
  EXPECT_EQ(experts["dense_layers"], 1);
}

// Remarks hold all that the table cannot say, and nothing more is lost: whatever the schedule's
// name stands for, and where a key says otherwise.
TEST(RoundTrip, TheTableOfEverySchedulesPassesReadsBackWithItsRemarks) {
  const testing::TemporaryFolder folder;
  int compared = 0;
  for (const char* keys : {"", R"(, "overlap": {"pp": true})", R"(, "overlap": {"pp": false})"}) {
    for (const Schedule* rules : schedules()) {
      if (rules->name == std::string_view("file")) continue;  // it is read, not made
      const std::string chunks =
          rules->chunks == Schedule::kSeveral ? R"(, "virtual_stages": 2)" : "";
      const std::string text = fmt::format(
          R"({{"stepcast": 1, "model": "gpt3-13b", "cluster": {{"base": "dgx-a100-80g", "gpus": 8}},
              "training": {{"global_batch": 16, "framework": "megatron"}},
              "layout": {{"pp": 4, "tp": 2, "schedule": "{}"{}{}}}}})",
          rules->name, chunks, keys);
      const auto document = JsonDocument::parse(text, "named.json");
      auto scenario = read_scenario(**document, source_folders());
      ASSERT_TRUE(scenario.has_value()) << to_string(scenario.error()) << text;
      // Some orders follow prices.
      ASSERT_TRUE(keep_timed_orders(source_folders(), *scenario).empty()) << text;
      const auto exported = export_scenario(*scenario, text, "schedule", {}, source_folders());
      ASSERT_TRUE(exported.has_value()) << to_string(exported.error());
      folder.write("order.csv", exported->files.front().text);
      SortedJson stated = SortedJson::parse(text);
      for (const char* lost : {"virtual_stages", "overlap"}) stated["layout"].erase(lost);
      stated["layout"]["schedule"] = "file:" + (folder / "order.csv");
      for (const Setting& remark : exported->remarks) {
        EXPECT_TRUE(apply_override(stated, remark.path, remark.value).empty()) << remark.path;
      }
      const auto from_file = JsonDocument::from(stated, "file.json");
      const auto back = read_scenario(*from_file, source_folders());
      ASSERT_TRUE(back.has_value()) << to_string(back.error()) << stated;
      expect_same_forecast(*scenario, *back, json_text(stated));
      ++compared;
    }
  }
  EXPECT_GE(compared, 3 * static_cast<int>(schedules().size() - 1));
}

// Every case of the shipped suites that a launcher can start, in all three ways of starting it.
TEST(RoundTrip, ShippedSuitesReadBackFromScriptsBatchFilesAndManifests) {
  int written = 0;
  std::set<std::string> seen;
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/suites")) {
    if (file.path().extension() != ".json") continue;
    const auto text = read_text_file(file.path().string());
    ASSERT_TRUE(text);
    const SortedJson suite = SortedJson::parse(*text);
    for (const SortedJson& item : suite["cases"]) {
      if (item.contains("collective")) continue;
      const std::string stated = json_text(item["scenario"]);
      const auto document = JsonDocument::from(item["scenario"], "suite.json");
      const auto scenario = read_scenario(*document, source_folders());
      if (!scenario || scenario->training.framework == framework_named("native")) continue;
      // One of each framework and size is enough of a suite whose cases differ in little.
      const std::string kind = item["scenario"]["training"].value("framework", std::string()) +
                               file.path().filename().string() +
                               std::to_string(scenario->cluster.gpus());
      if (!seen.insert(kind).second) continue;
      for (const auto target : {"torchrun", "slurm", "kubernetes"}) {
        const auto exported = export_scenario(*scenario, stated, target, {}, source_folders());
        if (!exported) {
          for (const Error& error : exported.error()) {
            EXPECT_TRUE(says_why(error)) << to_string(error);
          }
          continue;
        }
        ++written;
        // All three hold the same settings, so one forecast is enough.
        expect_reads_back(*scenario, *exported, exported->files.back().text, stated,
                          target == std::string("torchrun"));
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(written, 30);
}

TEST(RoundTrip, ANamedModelOfTorchtitansStaysItsFlavor) {
  const std::string stated =
      R"({"stepcast": 1, "model": "llama-3.1-70b", "cluster": "dgx-h100x8",
          "training": {"global_batch": 512, "framework": "fsdp"}, "layout": {"tp": 8}})";
  const Scenario scenario = testing::scenario_from(stated);
  const auto exported = export_scenario(scenario, stated, "torchtitan", {}, source_folders());
  ASSERT_TRUE(exported) << to_string(exported.error());
  EXPECT_NE(exported->files[0].text.find("flavor = \"70B\""), std::string::npos);
  ASSERT_EQ(exported->remarks.size(), 1u);
  EXPECT_EQ(exported->remarks[0].path, "cluster");
}

}  // namespace
}  // namespace stepcast
