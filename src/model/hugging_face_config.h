// SPDX-License-Identifier: Apache-2.0
// Reading a Hugging Face config.json: keys with aliases, and defaults where the file is silent,
// which stand for those of the family's configuration class in the transformers library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/model.h"
#include "model/model_check.h"

namespace stepcast {

class HuggingFaceConfig {
 public:
  using Keys = std::vector<std::string_view>;  // aliases, the usual one first

  explicit HuggingFaceConfig(const JsonValue& value) : reader_(value) {}

  std::int64_t count(const Keys& keys, std::int64_t fallback, std::int64_t max,
                     std::int64_t min = 1);
  std::int64_t required_count(const Keys& keys, std::int64_t max);  // 0 after an error
  bool flag(std::string_view key, bool fallback);
  double fraction(std::string_view key, double fallback);
  double number(const Keys& keys, double max);  // 0: the file does not say
  // The alias that the file uses; the usual one when it uses none.
  std::string_view present(const Keys& keys);
  bool states_null(std::string_view key) const;  // there, and null: not the class's default

  ObjectReader& reader() { return reader_; }

  ModelKeys keys;  // for messages

 private:
  ObjectReader reader_;
};

// A family's class assumes these values when a file is silent. 0: see the field.
struct FamilyDefaults {
  std::int64_t vocab = 0;
  std::int64_t ffn = 0;  // 0: 4 x hidden
  std::int64_t positions = 0;
  std::int64_t heads = 0;     // 0: required
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  bool tied = false;
};

// Shapes by the usual keys and their older aliases (n_embd, n_layer, ...).
Model read_shape(HuggingFaceConfig& config, const FamilyDefaults& defaults);
// Adds what all of Llama's form share: gated MLP, RMSNorm, rotary positions, no biases.
Model read_llama_shape(HuggingFaceConfig& config, const FamilyDefaults& defaults);
// A sliding window from `layer_types`, or of the given period (Model::attention_window_every).
void read_window(HuggingFaceConfig& config, Model& model, std::int64_t window,
                 std::int64_t every = 1);

using FamilyReader = Model (*)(HuggingFaceConfig& config);

struct Family {
  std::string_view model_type;
  FamilyReader read;
};

std::span<const Family> gpt_families();    // families_gpt.cpp
std::span<const Family> llama_families();  // families_llama.cpp
std::span<const Family> moe_families();    // families_moe.cpp

}  // namespace stepcast
