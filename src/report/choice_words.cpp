// SPDX-License-Identifier: Apache-2.0
#include "report/choice_words.h"

#include <fmt/format.h>

#include <tuple>

#include "report/number_text.h"

namespace stepcast {
namespace {

std::string traffic_of(const TrafficChoice& choice) {
  const double megabytes = static_cast<double>(choice.message.bytes) / 1e6;
  const std::string size = number_text(megabytes, 3) + " MB";
  if (choice.message.kind == CollectiveKind::kSendReceive) {
    return fmt::format("messages of {} between stages", size);
  }
  return fmt::format("the {} of {} among {} ranks ({})", name_of(choice.message.kind), size,
                     choice.ranks, name_of(choice.group));
}

bool is_same_traffic(const TrafficChoice& one, const TrafficChoice& other) {
  return one.group == other.group && one.message == other.message && one.ranks == other.ranks;
}

auto way_of(const TrafficChoice& choice) {
  return std::tuple(choice.algorithm, choice.protocol, choice.channels);
}

}  // namespace

std::string changed_choice(const std::vector<TrafficChoice>& before,
                           const std::vector<TrafficChoice>& after) {
  if (before.size() != after.size()) return "";
  const TrafficChoice *from = nullptr, *to = nullptr;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!is_same_traffic(before[i], after[i]) || way_of(before[i]) == way_of(after[i])) continue;
    if (from != nullptr && before[i].message.bytes <= from->message.bytes) continue;
    from = &before[i];
    to = &after[i];
  }
  if (from == nullptr) return "";
  if (from->algorithm == to->algorithm && from->protocol == to->protocol) {
    return fmt::format("NCCL takes {} instead of {} for {}", counted_text(to->channels, "channel"),
                       from->channels, traffic_of(*from));
  }
  const auto way = [](const TrafficChoice& choice) {
    return fmt::format("{} with {}", name_of(choice.algorithm), name_of(choice.protocol));
  };
  return fmt::format("NCCL takes {} instead of {} for {}", way(*to), way(*from), traffic_of(*from));
}

}  // namespace stepcast
