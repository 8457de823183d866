// SPDX-License-Identifier: Apache-2.0
// The two small languages inside Megatron's flags: --pipeline-model-parallel-layout
// ("Et*3|(tt|)*29,m|L") and the list expressions of --moe-layer-freq ("([0]*3+[1]*58)").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

struct LayoutText {
  std::vector<std::int64_t> layers;  // decoder layers of each chunk, in model order
  std::int64_t mtp = 0;              // multi-token-prediction layers in all
  std::int64_t last_mtp = 0;         // the last chunk with one of them
};

// Returns nothing for another letter than E, t, m, L, or a repetition that is no count.
std::optional<LayoutText> read_layout_text(std::string_view text);
// `apart`: prediction layers are in the chunk before the last.
std::string layout_text(const std::vector<std::int64_t>& layers, std::int64_t mtp, bool apart);

// 0 and 1 per layer. A plain number n means: the first of each n layers (Megatron's layer % n).
std::optional<std::vector<bool>> read_layer_pattern(std::string_view text, std::int64_t layers);
std::string layer_pattern(const std::vector<bool>& pattern);  // "([0]*3+[1]*58)"

}  // namespace stepcast
