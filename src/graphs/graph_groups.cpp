// SPDX-License-Identifier: Apache-2.0
#include "graphs/graph_groups.h"

#include <algorithm>
#include <numeric>

#include "core/json.h"
#include "core/text/escape.h"
#include "graphs/execution_graph.h"

namespace stepcast {

Result<NamedRanks> read_rank_groups(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  const JsonValue root = (*document)->root();
  NamedRanks out;
  if (!root.is_object()) root.fail(ErrorCode::kWrongType, "is no object of groups");
  if (root.is_object()) {
    for (const auto& [name, value] : root.members()) {
      std::vector<std::int32_t>& ranks = out[name];
      for (const JsonValue& item : value.items()) {
        const auto rank = item.integer(0, kMostGraphRanks - 1);
        if (rank) ranks.push_back(static_cast<std::int32_t>(*rank));
      }
      std::vector<std::int32_t> sorted = ranks;
      std::ranges::sort(sorted);
      if (std::ranges::adjacent_find(sorted) != sorted.end()) {
        value.fail(ErrorCode::kBadValue, "names a rank twice", "each rank once");
      }
    }
  }
  if (!(*document)->ok()) return failure((*document)->errors());
  return out;
}

std::string rank_groups_text(const std::vector<std::vector<std::int32_t>>& groups) {
  Json out = Json::object();
  for (std::size_t i = 0; i < groups.size(); ++i) out[std::to_string(i + 1)] = groups[i];
  return json_text(out) + "\n";
}

std::int32_t GroupTable::number_of(const std::vector<std::int32_t>& ranks) {
  const auto [known, fresh] = known_.try_emplace(ranks, static_cast<std::int32_t>(groups_.size()));
  if (fresh) groups_.push_back(ranks);
  return known->second;
}

std::int32_t GroupTable::of_all(std::int32_t ranks) {
  if (all_ < 0) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    all_ = number_of(all);
  }
  return all_;
}

}  // namespace stepcast
