// SPDX-License-Identifier: Apache-2.0
#include "cluster/nccl_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/characters.h"

namespace stepcast {
namespace {

using Sets = std::array<std::uint8_t, kNcclFunctions>;

// Names as NCCL compares them, in small letters (src/graph/tuning.cc, ncclAlgoStr, ncclProtoStr).
struct Word {
  std::string_view name;
  int bit;  // -1: known to NCCL, and not modelled
};
constexpr std::array kAlgorithms = {Word{"tree", 1},
                                    Word{"ring", 0},
                                    Word{"collnetdirect", -1},
                                    Word{"collnetchain", -1},
                                    Word{"nvls", 2},
                                    Word{"nvlstree", 3},
                                    Word{"pat", 4}};
constexpr std::array kProtocols = {Word{"ll", 0}, Word{"ll128", 1}, Word{"simple", 2}};
constexpr std::array<std::string_view, kNcclFunctions> kFunctions = {"allreduce", "allgather",
                                                                     "reducescatter", "broadcast"};

std::string small(std::string_view text) {
  std::string out = lower_case(text);
  std::erase(out, ' ');
  return out;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// "ring,tree", "^nvls", and since 2.24 "allreduce:ring;allgather:^nvls".
class Choice {
 public:
  Choice(ObjectReader& reader, const char* key, std::span<const Word> words)
      : reader_(reader), key_(key), words_(words) {}

  void read(const std::string& text, Sets& sets) const {
    for (const std::string& part : split(small(text), ';')) {
      const std::size_t colon = part.find(':');
      if (colon == part.npos) {
        sets.fill(set_of(part, sets.front()));
        continue;
      }
      const auto function = std::ranges::find(kFunctions, part.substr(0, colon));
      if (function == kFunctions.end()) {
        fail(fmt::format("'{}' is no function", part.substr(0, colon)),
             "allreduce, allgather, reducescatter or broadcast");
        continue;
      }
      std::uint8_t& own = sets[static_cast<std::size_t>(function - kFunctions.begin())];
      own = set_of(part.substr(colon + 1), own);
    }
  }

 private:
  void fail(std::string message, std::string hint) const {
    reader_.fail(key_, ErrorCode::kBadValue, std::move(message), std::move(hint));
  }

  // NCCL runs a ring where nothing of a list is there for a function.
  std::uint8_t set_of(std::string_view list, std::uint8_t all) const {
    const bool excludes = list.starts_with('^');
    if (excludes) list.remove_prefix(1);
    std::uint8_t named = 0;
    for (const std::string& word : split(list, ',')) {
      const auto found = std::ranges::find(words_, word, &Word::name);
      if (found == words_.end()) {
        std::string known;
        for (const Word& one : words_) known += (known.empty() ? "" : ", ") + std::string(one.name);
        fail(fmt::format("'{}' is not known to NCCL", word), known);
      } else if (found->bit >= 0) {
        named = static_cast<std::uint8_t>(named | 1U << static_cast<unsigned>(found->bit));
      } else if (!excludes) {
        reader_.fail(key_, ErrorCode::kNotSupported, fmt::format("'{}' is not modelled", word),
                     "ring, tree, nvls, nvlstree and pat are");
      }
    }
    return excludes ? static_cast<std::uint8_t>(all & ~named) : named;
  }

  ObjectReader& reader_;
  const char* key_;
  std::span<const Word> words_;
};

// "2.21", "2.21.5", "2.21.5-1"
std::optional<std::int64_t> minor_of(std::string_view text) {
  if (!text.starts_with("2.")) return std::nullopt;
  text.remove_prefix(2);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), out);
  const bool ends = end == text.end() || *end == '.' || *end == '-' || *end == '+';
  return error == std::errc() && ends && out < 100 ? std::optional(out) : std::nullopt;
}

// When the versions were released: the dates of the tags v2.18.6-1 to v2.30.7-1 and v2.31.2-1 of
// NVIDIA/nccl.
struct Release {
  std::string_view month;
  std::int64_t minor;
};
constexpr std::array kReleases = {
    Release{"2023-10", 18}, Release{"2023-11", 19}, Release{"2024-02", 20}, Release{"2024-04", 21},
    Release{"2024-06", 22}, Release{"2024-09", 23}, Release{"2025-01", 25}, Release{"2025-04", 26},
    Release{"2025-07", 27}, Release{"2025-11", 28}, Release{"2026-02", 29}, Release{"2026-06", 30},
    Release{"2026-08", 31}};

// The newest release of a month, "2024-06".
std::optional<std::int64_t> minor_at(std::string_view month) {
  if (month.size() != 7 || month[4] != '-' || !month.starts_with("20")) return std::nullopt;
  if (month.substr(5) < "01" || month.substr(5) > "12") return std::nullopt;
  std::optional<std::int64_t> out;
  for (const Release& one : kReleases) {
    if (one.month <= month) out = one.minor;
  }
  return out;
}

// "nvcr.io/nvidia/pytorch:25.04-py3", "25.04": the month that names an image of NVIDIA's, as
// "2025-04". Empty: the text names none.
std::string month_of_image(std::string_view text) {
  if (const auto colon = text.rfind(':'); colon != text.npos) text.remove_prefix(colon + 1);
  if (const auto dash = text.find('-'); dash != text.npos) text = text.substr(0, dash);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 5 || text[2] != '.') return "";
  for (const std::size_t i : {0, 1, 3, 4}) {
    if (!is_digit(text[i])) return "";
  }
  return fmt::format("20{}-{}", text.substr(0, 2), text.substr(3, 2));
}

void read_version(ObjectReader& reader, NcclSettings& out) {
  out.version = reader.text("nccl").value_or("");
  if (out.version.empty()) return;
  const std::string image = month_of_image(out.version);
  const auto by_month = minor_at(image.empty() ? out.version : image);
  const auto minor = by_month ? by_month : minor_of(out.version);
  const auto known =
      fmt::format("\"2.{}\" to \"2.{}\", or a month: \"2024-06\", \"pytorch:24.06-py3\"",
                  NcclSettings::kOldest, NcclSettings::kNewest);
  if (!minor) {
    reader.fail("nccl", ErrorCode::kBadValue,
                fmt::format("'{}' is no version of NCCL", out.version), known);
    return;
  }
  if (*minor < NcclSettings::kOldest) {
    reader.fail("nccl", ErrorCode::kNotSupported,
                fmt::format("{} is older than the versions that are modelled", out.version), known);
    return;
  }
  out.is_newer = *minor > NcclSettings::kNewest;
  out.minor = std::min(*minor, NcclSettings::kNewest);
}

}  // namespace

NcclSettings read_software(const JsonValue& value) {
  NcclSettings out;
  ObjectReader reader(value);
  read_version(reader, out);
  out.algorithms = reader.text("NCCL_ALGO").value_or("");
  out.protocols = reader.text("NCCL_PROTO").value_or("");
  Choice(reader, "NCCL_ALGO", kAlgorithms).read(out.algorithms, out.may_run);
  Choice(reader, "NCCL_PROTO", kProtocols).read(out.protocols, out.may_speak);
  out.max_channels = reader.integer("NCCL_MAX_NCHANNELS", 1, 64).value_or(0);
  out.min_ctas = reader.integer("NCCL_MIN_CTAS", 1, 64).value_or(0);
  if (const auto nvls = reader.integer("NCCL_NVLS_ENABLE", 0, 2)) out.nvls = *nvls != 0;
  reader.finish();
  return out;
}

SortedJson to_json(const NcclSettings& settings) {
  SortedJson out = SortedJson::object();
  if (!settings.version.empty()) out["nccl"] = settings.version;
  if (!settings.algorithms.empty()) out["NCCL_ALGO"] = settings.algorithms;
  if (!settings.protocols.empty()) out["NCCL_PROTO"] = settings.protocols;
  if (settings.max_channels > 0) out["NCCL_MAX_NCHANNELS"] = settings.max_channels;
  if (settings.min_ctas > 0) out["NCCL_MIN_CTAS"] = settings.min_ctas;
  if (settings.nvls) out["NCCL_NVLS_ENABLE"] = *settings.nvls ? 1 : 0;
  return out;
}

}  // namespace stepcast
