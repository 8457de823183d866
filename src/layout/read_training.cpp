// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "layout/choices.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

constexpr std::array kPrecisions = {DataType::kBf16, DataType::kFp16, DataType::kFp32,
                                    DataType::kFp8};
constexpr std::size_t kAccumulatedPrecisions = 3;  // gradients are never fp8

std::optional<DataType> read_precision(ObjectReader& object, const char* key,
                                       std::size_t accepted = kPrecisions.size()) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < accepted; ++i) names.push_back(name_of(kPrecisions[i]));
  const auto found = object.choice(key, names);
  return found ? std::optional(kPrecisions[*found]) : std::nullopt;
}

std::optional<std::string> read_word(ObjectReader& object, const char* key,
                                     const std::vector<std::string>& words) {
  const auto found = object.choice(key, words);
  return found ? std::optional(words[*found]) : std::nullopt;
}

template <class Enum>
std::optional<Enum> read_enum(ObjectReader& object, const char* key,
                              const std::vector<std::string>& names) {
  const auto found = object.choice(key, names);
  return found ? std::optional(static_cast<Enum>(*found)) : std::nullopt;
}

RulesInput read_rules(ObjectReader& object) {
  RulesInput rules;
  rules.bucket_elements = object.integer("bucket_elements", 0);
  rules.gather_bucket_elements = object.integer("gather_bucket_elements", 0);
  rules.prefetch_units = object.integer("prefetch_units", 0, 1);
  rules.host_sync_after_p2p = object.boolean("host_sync_after_p2p");
  rules.host_sync_at_batch = object.boolean("host_sync_at_batch");
  rules.fused_gradient_accumulation = object.boolean("fused_gradient_accumulation");
  rules.scatter_gather_p2p = object.boolean("scatter_gather_p2p");
  return rules;
}

}  // namespace

TrainingInput read_training(const JsonValue& value) {
  ObjectReader object(value);
  TrainingInput training;
  training.global_batch = object.required_integer("global_batch", 1, std::int64_t{1} << 32);
  training.sequence_length = object.integer("sequence_length", 1, std::int64_t{1} << 22);
  training.precision = read_precision(object, "precision");
  training.fp8_recipe =
      read_word(object, "fp8_recipe", {"delayed", "current", "mxfp8", "blockwise", "rowwise"});
  training.attention = read_enum<AttentionKernel>(object, "attention", attention_names());
  training.optimizer = read_word(object, "optimizer", {"adamw"});
  training.framework = read_enum<Framework>(object, "framework", framework_names());
  training.grad_precision = read_precision(object, "grad_precision", kAccumulatedPrecisions);
  training.reduce_precision = read_precision(object, "reduce_precision", kAccumulatedPrecisions);
  training.grad_clip = read_enum<GradClip>(object, "grad_clip", grad_clip_names());
  training.no_sync = object.boolean("no_sync");
  training.compile = object.boolean("compile");
  training.cuda_graphs = object.boolean("cuda_graphs");
  training.mode = read_enum<TrainingMode>(object, "mode", training_mode_names());
  training.lora_rank = object.integer("lora_rank", 1, 1 << 16);
  training.software = object.text("software");
  training.rules = read_rules(object);
  object.finish();
  return training;
}

}  // namespace stepcast
