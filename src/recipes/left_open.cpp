// SPDX-License-Identifier: Apache-2.0
// Names of flags: NVIDIA/Megatron-LM megatron/training/arguments.py; of keys: torchtitan
// torchtitan/config/job_config.py, deepspeed.ai/docs/config-json.
#include "recipes/left_open.h"

#include <string_view>

#include "layout/scenario.h"

namespace stepcast {
namespace {

std::vector<std::string> of_megatron(const Scenario& scenario) {
  std::vector<std::string> out{
      "the learning rate and its schedule (--lr, --lr-decay-style, --lr-warmup-iters)",
      "weight decay and betas (--weight-decay, --adam-beta1, --adam-beta2)",
      "the data (--data-path in place of --mock-data) and the tokenizer (--tokenizer-type)",
      "checkpoints and evaluation (--save, --save-interval, --eval-interval)"};
  if (scenario.model.moe) {
    out.emplace_back(
        "the router's groups (--moe-router-num-groups, --moe-router-group-topk), scaling "
        "(--moe-router-topk-scaling-factor) and losses (--moe-aux-loss-coeff)");
  }
  return out;
}

std::vector<std::string> of_torchtitan(const Scenario& scenario) {
  std::vector<std::string> out{
      "the learning rate and its schedule (optimizer.lr, lr_scheduler)",
      "the data (training.dataset, training.dataset_path) and the tokenizer (model.hf_assets_path)",
      "checkpoints (checkpoint.enable, checkpoint.interval)"};
  if (scenario.model.moe)
    out.emplace_back("the router's groups and scaling (the model's registry)");
  return out;
}

std::vector<std::string> of_deepspeed(const Scenario& scenario) {
  std::vector<std::string> out{"the learning rate and its schedule (optimizer.params, scheduler)",
                               "the data, the tokenizer and checkpoints (your training program)"};
  if (scenario.model.moe)
    out.emplace_back("the router's groups and scaling (your training program)");
  return out;
}

}  // namespace

std::vector<std::string> settings_left_open(const Scenario& scenario) {
  const std::string_view framework = name_of(scenario.training.framework);
  if (framework == "megatron") return of_megatron(scenario);
  if (framework == "fsdp") return of_torchtitan(scenario);
  if (framework == "deepspeed") return of_deepspeed(scenario);
  return {};
}

}  // namespace stepcast
