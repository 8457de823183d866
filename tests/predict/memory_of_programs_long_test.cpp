// SPDX-License-Identifier: Apache-2.0
// The memory of every kind of program: whatever ships is lowered with every type of number, recipe,
// recomputation and framework. The lowering asserts the lives of all buffers
// (program/check_lives.h, program/check_step.h), the replay that no part of memory is ever below
// the states and that nothing else is left at the end. Layouts have one or two ranks on each axis:
// faults of lives do not depend on sizes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "model/import_model.h"
#include "predict/memory_replay.h"
#include "program/program.h"
#include "scenario_from.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

using nlohmann::json;

Result<Scenario> read(const json& stated) {
  const auto document = std::move(*JsonDocument::parse(stated.dump(), "program.json"));
  return read_scenario(*document, testing::source_folders());
}

// A type of number, with the GPU that multiplies it.
struct Number {
  std::string name, recipe, base;
};

// Hopper keeps a transposed copy of what it multiplies in fp8, Blackwell does not.
std::vector<Number> numbers() {
  std::vector<Number> out;
  for (const char* wide : {"bf16", "fp16", "fp32", "tf32"}) out.push_back({wide, "", "dgx-h100"});
  for (const Fp8Recipe& recipe : fp8_recipes()) {
    if (!recipe.needs_block_scales) out.push_back({"fp8", recipe.name, "dgx-h100"});
    out.push_back({"fp8", recipe.name, "dgx-b200"});
  }
  return out;
}

json scenario_of(const std::string& model, const std::string& framework, const Number& number) {
  json training = {{"global_batch", 4},
                   {"sequence_length", 1024},
                   {"framework", framework},
                   {"precision", number.name}};
  if (!number.recipe.empty()) training["fp8_recipe"] = number.recipe;
  return {{"stepcast", 1},
          {"model", model},
          {"cluster", {{"base", number.base}, {"gpus", 2}}},
          {"training", training},
          {"layout", {{"dp", 2}}}};
}

std::string name_of(const Recompute& recompute) {
  std::string out = stepcast::name_of(recompute.mode);
  for (const RecomputedModule module : recompute.modules.named) {
    out += fmt::format(" {}", stepcast::name_of(module));
  }
  return out;
}

bool has_module(const Model& model, RecomputedModule module) {
  switch (module) {
    case RecomputedModule::kExpertActivation:
    case RecomputedModule::kExperts:
      return model.moe.has_value();
    case RecomputedModule::kSharedExperts:
      return model.moe && model.moe->shared_ffn > 0;
    case RecomputedModule::kLatentQueries:
      return model.mla.has_value();
    case RecomputedModule::kCoreAttention:
    case RecomputedModule::kMlpActivation:
    case RecomputedModule::kMlp:
    case RecomputedModule::kLayerNorm:
      return true;
    case RecomputedModule::kOperations:
      return false;  // it goes with nothing else: below
  }
  return false;
}

std::vector<RecomputedModule> modules_of(const Model& model) {
  std::vector<RecomputedModule> out;
  for (std::size_t i = 0; i < recomputed_module_names().size(); ++i) {
    const auto module = static_cast<RecomputedModule>(i);
    if (has_module(model, module)) out.push_back(module);
  }
  return out;
}

Recompute recomputing(RecomputeMode mode, std::vector<RecomputedModule> modules = {}) {
  Recompute out;
  out.mode = mode;
  out.modules.named = std::move(modules);
  return out;
}

// Recomputes nothing, everything, and all modules.
std::vector<Recompute> of_each_mode(const Model& model) {
  return {recomputing(RecomputeMode::kNone), recomputing(RecomputeMode::kFull),
          recomputing(RecomputeMode::kSelective, modules_of(model))};
}

// And every module alone, and what torchtitan chooses where it is legal.
std::vector<Recompute> recomputations(const Scenario& scenario, const json& stated) {
  std::vector<Recompute> out = of_each_mode(scenario.model);
  for (const RecomputedModule module : modules_of(scenario.model)) {
    out.push_back(recomputing(RecomputeMode::kSelective, {module}));
  }
  json chosen = stated;
  chosen["layout"]["recompute"] = {{"mode", "selective"}, {"modules", {"torchtitan_op"}}};
  if (read(chosen)) {
    out.push_back(recomputing(RecomputeMode::kSelective, {RecomputedModule::kOperations}));
  }
  return out;
}

// Whether memory of the program is sound; a failure names it.
void check(const Scenario& scenario, const json& stated) {
  try {
    const Program program = lower(scenario);
    for (const Role& role : program.roles) {
      const MemoryPeak peak = replay_memory(program, role);
      EXPECT_GT(total(peak.parts), total(role.persistent)) << stated.dump();
    }
  } catch (const std::logic_error& error) {
    ADD_FAILURE() << error.what() << "\n  recompute " << name_of(scenario.layout.recompute) << ", "
                  << stated.dump();
  }
}

// Checks the program of a scenario under each of these; returns how many there were.
int check_all(Scenario scenario, const json& stated, const std::vector<Recompute>& recomputations) {
  for (const Recompute& recompute : recomputations) {
    scenario.layout.recompute = recompute;
    check(scenario, stated);
    if (::testing::Test::HasFailure()) return 0;
  }
  return static_cast<int>(recomputations.size());
}

std::vector<std::string> models() {
  const auto entries = list_models(testing::source_folders().models);
  std::vector<std::string> out;
  for (const ModelEntry& entry : entries.value()) {
    out.push_back(entry.name);
  }
  return out;
}

// The lowering writes a model differently by these traits, but for sizes.
std::vector<std::int64_t> form_of(const Model& m) {
  std::vector<std::int64_t> out = {static_cast<std::int64_t>(m.mlp),
                                   static_cast<std::int64_t>(m.norm),
                                   static_cast<std::int64_t>(m.position),
                                   m.tied_embeddings,
                                   m.qkv_bias,
                                   m.attention_output_bias,
                                   m.mlp_bias,
                                   m.norm_bias,
                                   m.head_bias,
                                   m.parallel_block,
                                   m.embedding_norm,
                                   m.query_key_norm,
                                   m.wide_query_key_norm,
                                   m.norms_per_layer,
                                   m.attention_sinks > 0,
                                   m.attention_window > 0,
                                   m.mtp_layers,
                                   m.final_norm};
  if (m.moe) {
    out.insert(out.end(), {m.moe->shared_ffn > 0, m.moe->dense_layers > 0, m.moe->router_bias,
                           m.moe->shared_gate});
  }
  if (m.mla) out.push_back(m.mla->q_lora_rank > 0);
  return out;
}

// One model of each form.
std::vector<std::string> forms() {
  std::set<std::vector<std::int64_t>> known;
  std::vector<std::string> out;
  for (const std::string& name : models()) {
    const auto model = find_model(name, testing::source_folders().models);
    if (known.insert(form_of(model.value())).second) out.push_back(name);
  }
  return out;
}

// A step may have these beside: each is a patch of a scenario.
std::vector<json> variants() {
  std::vector<json> out = {
      {{"training", {{"attention", "unfused"}}}},
      {{"training", {{"mode", "lora"}}}},
      {{"training", {{"mode", "qlora"}}}},
      {{"training", {{"mode", "lora"}, {"lora_targets", {"qkv"}}}}},
      {{"training", {{"mode", "lora"}}}, {"layout", {{"tp", 2}, {"dp", 1}}}},
      {{"training", {{"fp8_params", true}}}},
      {{"training", {{"fp8_attention", true}}}},
      {{"training", {{"no_sync", true}}}},
      {{"training", {{"compile", false}}}},
      {{"training", {{"compile", true}}}},
      {{"training", {{"cuda_graphs", true}}}},
      {{"layout", {{"tp", 2}, {"dp", 1}}}},
      {{"layout", {{"tp", 2}, {"dp", 1}, {"sequence_parallel", false}}}},
      {{"layout", {{"tp", 2}, {"dp", 1}, {"overlap", {{"tp", true}}}}}},
      {{"layout", {{"offload", {{"activations", 0.5}}}}}},
      {{"layout", {{"ep", 2}}}},
      {{"layout", {{"ep", 2}, {"overlap", {{"ep", true}}}}}},
      {{"cluster", {{"gpus", 4}}}, {"layout", {{"tp", 2}, {"ep", 2}, {"etp", 2}}}},
      {{"cluster", {{"gpus", 4}}},
       {"layout",
        {{"pp", 2},
         {"ep", 2},
         {"schedule", "interleaved"},
         {"virtual_stages", 2},
         {"overlap", {{"ep", true}}}}}}};
  for (const int zero : {0, 1, 2, 3}) out.push_back({{"layout", {{"zero", zero}}}});
  for (const char* release : {"2021-06", "2022-06", "2023-01"}) {
    out.push_back({{"training", {{"release", release}}}, {"layout", {{"tp", 2}, {"dp", 1}}}});
  }
  for (const std::string& method : context_method_names()) {
    out.push_back(
        {{"cluster", {{"gpus", 4}}}, {"layout", {{"cp", 4}, {"dp", 1}, {"cp_method", method}}}});
  }
  for (const std::string& schedule : made_schedules()) {
    const bool needs_chunks = schedule == "interleaved" || schedule == "looped-bfs";
    out.push_back({{"layout", {{"pp", 2}, {"dp", 1}, {"schedule", schedule}}}});
    if (needs_chunks) out.back()["layout"]["virtual_stages"] = 2;
  }
  return out;
}

class MemoryOfPrograms : public ::testing::TestWithParam<std::string> {};

TEST_P(MemoryOfPrograms, ReturnsToTheStatesForEveryModelNumberAndRecomputation) {
  int programs = 0;
  for (const std::string& model : models()) {
    for (const Number& number : numbers()) {
      const json stated = scenario_of(model, GetParam(), number);
      const auto scenario = read(stated);
      ASSERT_TRUE(scenario) << to_string(scenario.error());
      programs += check_all(*scenario, stated, recomputations(*scenario, stated));
      if (HasFailure()) return;
    }
  }
  // 13 numbers under nothing, everything, all modules and each of four modules of a dense model.
  // Models with experts or latent attention have more modules, and FSDP chooses operations.
  EXPECT_GE(models().size(), 100U);
  EXPECT_GE(programs, 13 * 7 * static_cast<int>(models().size()));
}

// Megatron has all of these, and each other framework at least so many.
std::size_t least_variants(const std::string& framework) {
  if (framework == "megatron") return variants().size();
  return framework == "fsdp" ? 22 : 38;  // FSDP has no pipeline and no groups of experts
}

// Adds scenarios whose experts travel by another dispatcher.
std::vector<Scenario> by_dispatcher(const Scenario& scenario) {
  std::vector<Scenario> out{scenario};
  const bool travels = scenario.model.moe && scenario.layout.ep > 1 && !scenario.layout.overlap.ep;
  if (!travels) return out;
  for (const MoeDispatcher dispatcher :
       {MoeDispatcher::kAllGather, MoeDispatcher::kDeepEp, MoeDispatcher::kHybridEp}) {
    out.push_back(scenario);
    out.back().model.moe->dispatcher = dispatcher;
  }
  return out;
}

TEST_P(MemoryOfPrograms, ReturnsToTheStatesWhateverAStepHasBeside) {
  int programs = 0;
  std::set<std::size_t> seen;
  const std::vector<json> beside = variants();
  for (const std::string& model : forms()) {
    for (const Number& number : {Number{"bf16", "", "dgx-h100"}, Number{"fp8", "", "dgx-h100"},
                                 Number{"fp8", "mxfp8", "dgx-b200"}}) {
      for (std::size_t v = 0; v < beside.size(); ++v) {
        json stated = scenario_of(model, GetParam(), number);
        stated.merge_patch(beside[v]);
        const auto scenario = read(stated);
        if (!scenario) continue;
        seen.insert(v);
        for (const Scenario& each : by_dispatcher(*scenario)) {
          programs += check_all(each, stated, of_each_mode(each.model));
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GE(seen.size(), least_variants(GetParam()));
  // So many of the models that ship today; another form of model adds its own.
  EXPECT_GE(programs, GetParam() == "fsdp" ? 4'700 : 8'300);
}

INSTANTIATE_TEST_SUITE_P(Of, MemoryOfPrograms, ::testing::ValuesIn(framework_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace stepcast
