// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_report_line.h"

#include <array>
#include <limits>

#include "core/json_tree.h"
#include "core/parse_json.h"

namespace stepcast {
namespace {

constexpr std::array kEvents{RankEvent::kStarted, RankEvent::kProgress, RankEvent::kHeartbeat,
                             RankEvent::kWarning, RankEvent::kFailed,   RankEvent::kFinished};
constexpr std::array kFailures{RankFailure::kOutOfMemory,   RankFailure::kNumerics,
                               RankFailure::kCommunication, RankFailure::kInput,
                               RankFailure::kMachine,       RankFailure::kInternal};

template <class Array>
std::optional<typename Array::value_type> named(const Array& values, const std::string& name) {
  for (const auto value : values) {
    if (name == name_of(value)) return value;
  }
  return std::nullopt;
}

std::string text_of(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::int64_t> integer_of(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<RankReport> report_of(const SortedJson& object) {
  if (!object.is_object()) return std::nullopt;
  const auto rank = integer_of(object, "rank");
  const auto event = named(kEvents, text_of(object, "event"));
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max() || !event) {
    return std::nullopt;
  }
  RankReport report;
  report.rank = static_cast<int>(*rank);
  report.event = *event;
  report.phase = text_of(object, "phase");
  report.done = integer_of(object, "done").value_or(0);
  report.total = integer_of(object, "total").value_or(0);
  report.text = text_of(object, *event == RankEvent::kFailed ? "message" : "text");
  if (*event == RankEvent::kFailed) {
    // A newer rank's kind of failure is still a failure.
    report.failure = named(kFailures, text_of(object, "kind")).value_or(RankFailure::kInternal);
  }
  return report;
}

}  // namespace

RankLine read_rank_line(std::string_view line) {
  const std::size_t word = line.find(kRankReportWord);
  if (word == std::string_view::npos) return {line, std::nullopt};
  const auto object = parse_json(line.substr(word + kRankReportWord.size()), "");
  const auto report = object ? report_of(*object) : std::nullopt;
  return report ? RankLine{line.substr(0, word), report} : RankLine{line, std::nullopt};
}

}  // namespace stepcast
