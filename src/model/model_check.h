// SPDX-License-Identifier: Apache-2.0
// Checks what every model must satisfy in whichever form; errors name the form's own keys.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast {

class ObjectReader;
struct Model;

// Bounds of the readers: a hundred times beyond any model trained so far.
inline constexpr std::int64_t kMaxLayers = 1 << 14;
inline constexpr std::int64_t kMaxWidth = 1 << 20;  // hidden, ffn, ranks
inline constexpr std::int64_t kMaxHeads = 1 << 14;  // heads and experts
inline constexpr std::int64_t kMaxVocab = 1 << 26;
inline constexpr std::int64_t kMaxPositions = 1 << 30;
inline constexpr double kMaxRopeBase = 1e12;
inline constexpr double kMaxParameters = 1e15;  // keeps byte counts inside 63 bits

// The keys that the file used for what the checks can find wrong.
struct ModelKeys {
  std::string hidden = "hidden";
  std::string heads = "heads";
  std::string kv_heads = "kv_heads";
  std::string head_dim = "head_dim";
  std::string layers = "layers";
  std::string experts = "experts";  // inside `moe` in the native form
  std::string top_k = "top_k";
  std::string dense_layers = "dense_layers";
  std::string layer_every = "layer_every";
};

// Fills in `head_dim` when it is 0 and checks the whole. `moe` reads the object with the keys of
// the experts (the same as `reader` in Hugging Face's flat form). Does nothing after a missing or
// wrongly typed shape, which has been reported already.
void complete_and_check(Model& model, const ModelKeys& keys, ObjectReader& reader,
                        ObjectReader& moe);

}  // namespace stepcast
