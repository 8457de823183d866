// SPDX-License-Identifier: Apache-2.0
// Layouts that `plan` proposes can be launched: exported for its framework, which refuses nothing
// of it, and imported again, the first place has the forecast that it had.
#include <filesystem>
#include <functional>
#include <string_view>

#include "cli/program.h"
#include "core/each.h"

namespace stepcast::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

struct Planned {
  const char* framework;
  const char* model;
  int gpus;
  int batch;
  const char* mode = "pretrain";
};

constexpr Planned kPlans[] = {
    {"megatron", "gpt3-1.3b", 1, 16},          {"megatron", "llama-3.1-8b", 2, 64},
    {"megatron", "llama-3.1-8b", 8, 64},       {"megatron", "llama-3.1-8b", 16, 64},
    {"megatron", "llama-3.1-70b", 64, 256},    {"megatron", "llama-3.1-70b", 512, 512},
    {"deepspeed", "gpt3-1.3b", 1, 16},         {"deepspeed", "gpt3-1.3b", 4, 64},
    {"deepspeed", "llama-3.1-8b", 8, 64},      {"deepspeed", "llama-3.1-8b", 16, 64},
    {"deepspeed", "llama-3.1-70b", 64, 256},   {"deepspeed", "llama-3.1-70b", 512, 512},
    {"fsdp", "llama-3.1-8b", 8, 64},           {"fsdp", "llama-3.1-8b", 16, 64},
    {"fsdp", "llama-3.1-8b", 128, 256},        {"fsdp", "llama-3.1-70b", 64, 256},
    {"fsdp", "llama-3.1-70b", 512, 512},       {"megatron", "qwen3-30b-a3b", 16, 256},
    {"megatron", "qwen3-30b-a3b", 32, 256},    {"megatron", "qwen3-30b-a3b", 128, 256},
    {"megatron", "mixtral-8x7b", 32, 512},     {"megatron", "mixtral-8x7b", 64, 512},
    {"megatron", "mixtral-8x7b", 512, 512},    {"deepspeed", "mixtral-8x7b", 64, 256},
    {"deepspeed", "mixtral-8x7b", 128, 256},   {"deepspeed", "qwen3-30b-a3b", 32, 256},
    {"fsdp", "llama-3.1-8b", 1, 32, "lora"},   {"fsdp", "llama-3.1-8b", 2, 32, "lora"},
    {"fsdp", "llama-3.1-8b", 4, 32, "lora"},   {"fsdp", "llama-3.1-8b", 8, 32, "lora"},
    {"fsdp", "llama-3.1-8b", 16, 32, "lora"},  {"fsdp", "llama-3.1-70b", 8, 64, "lora"},
    {"fsdp", "llama-3.1-70b", 16, 64, "lora"}, {"fsdp", "llama-3.1-8b", 1, 32, "qlora"},
    {"fsdp", "llama-3.1-8b", 2, 32, "qlora"},  {"fsdp", "llama-3.1-8b", 4, 32, "qlora"},
    {"fsdp", "llama-3.1-8b", 8, 32, "qlora"},  {"fsdp", "llama-3.1-8b", 16, 32, "qlora"},
    {"fsdp", "llama-3.1-70b", 8, 64, "qlora"}, {"fsdp", "llama-3.1-70b", 16, 64, "qlora"}};

// The command says what the files of a target leave to the training program.
Words import_words(const Planned& plan, const std::string& target, const std::string& files) {
  Words out{"import"};
  if (target == "peft") {
    out.insert(out.end(), {files + "/sft.yaml", files + "/accelerate.yaml"});
  } else {
    for (const auto& file : fs::directory_iterator(files)) out.push_back(file.path().string());
  }
  out.insert(out.end(), {"--cluster", "dgx-h100", "--gpus", std::to_string(plan.gpus)});
  if (target == "peft" || target == "deepspeed") {
    out.insert(out.end(), {"--model", plan.model, "--seq", "2048"});
  }
  return out;
}

// Each plan that `holds` names is made, exported, imported again and forecast; at least `count`
// are.
void expect_forecasts_come_back(int count, const std::function<bool(const Planned&)>& holds) {
  AtLeast launched(count);
  for (const Planned& plan : kPlans) {
    if (!holds(plan)) continue;
    SCOPED_TRACE(std::string(plan.framework) + " " + plan.model + " " + std::to_string(plan.gpus) +
                 " " + plan.mode);
    const Folder folder;
    const std::string file = folder / "plan.json", files = folder / "run";
    const Outcome planned = run({"plan",
                                 "--model",
                                 plan.model,
                                 "--cluster",
                                 "dgx-h100",
                                 "--gpus",
                                 std::to_string(plan.gpus),
                                 "--framework",
                                 plan.framework,
                                 "--global-batch",
                                 std::to_string(plan.batch),
                                 "--seq",
                                 "2048",
                                 "--top",
                                 "1",
                                 "--replays",
                                 "12",
                                 "--set",
                                 std::string("training.mode=") + plan.mode,
                                 "--format",
                                 "json",
                                 "-o",
                                 file,
                                 "--quiet"});
    ASSERT_EQ(planned.code, 0) << planned.error;
    const json plans = json::parse(read_file(file));
    const std::string target = plans.contains("export") ? plans["export"].get<std::string>()
                               : std::string(plan.framework) == "fsdp" ? "torchtitan"
                                                                       : plan.framework;
    const Outcome exported =
        run({"export", file, "--place", "1", "--to", target, "-o", files + "/", "--quiet"});
    ASSERT_EQ(exported.code, 0) << exported.error;
    const Outcome imported = run(import_words(plan, target, files));
    ASSERT_EQ(imported.code, 0) << imported.error;
    write_file(folder / "back.json", imported.out);
    const Outcome again = run({"predict", folder / "back.json", "--format", "json"});
    ASSERT_EQ(again.code, 0) << again.error;
    const double first = plans["plans"][0]["prediction"]["step_time_s"];
    EXPECT_NEAR(again.json()["step_time_s"].get<double>(), first, 1e-9 * first);
    ++launched;
  }
}

bool pretrains(const Planned& plan) { return std::string_view(plan.mode) == "pretrain"; }

TEST(LaunchedPlans, OfMegatronComeBackWithTheirForecasts) {
  expect_forecasts_come_back(
      12, [](const Planned& plan) { return std::string_view(plan.framework) == "megatron"; });
}

TEST(LaunchedPlans, OfDeepSpeedComeBackWithTheirForecasts) {
  expect_forecasts_come_back(
      9, [](const Planned& plan) { return std::string_view(plan.framework) == "deepspeed"; });
}

TEST(LaunchedPlans, OfFsdpComeBackWithTheirForecasts) {
  expect_forecasts_come_back(5, [](const Planned& plan) {
    return std::string_view(plan.framework) == "fsdp" && pretrains(plan);
  });
}

TEST(LaunchedPlans, OfAdaptersComeBackWithTheirForecasts) {
  expect_forecasts_come_back(14, [](const Planned& plan) { return !pretrains(plan); });
}

}  // namespace
}  // namespace stepcast::testing
