// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/gpu_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "cluster/cluster.h"

namespace stepcast {
namespace {

constexpr const char* kAccepted = "64, 64,128,512, 64..4096 or 64-4096";

std::optional<std::int64_t> count_of(std::string_view text, Errors& errors) {
  std::int64_t count = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status == std::errc::invalid_argument || rest != text.data() + text.size()) {
    errors.push_back({ErrorCode::kWrongType, fmt::format("'{}' is not a number of GPUs", text), "",
                      "--gpus", kAccepted});
    return std::nullopt;
  }
  if (status != std::errc() || count < 1 || count > kMaxGpus) {
    errors.push_back({ErrorCode::kBadValue, fmt::format("{} is out of range", text), "", "--gpus",
                      fmt::format("1 to {}", kMaxGpus)});
    return std::nullopt;
  }
  return count;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_gpu_counts(const std::string& text) {
  std::vector<std::int64_t> out;
  Errors errors;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    // "8-64" is a range to whoever types it.
    const std::size_t dash = part.find('-');
    const bool is_dashed = dash != std::string::npos && dash > 0;
    const std::size_t dots = is_dashed ? dash : part.find("..");
    const auto low = count_of(part.substr(0, dots), errors);
    const auto high =
        dots == std::string::npos ? low : count_of(part.substr(dots + (is_dashed ? 1 : 2)), errors);
    if (!low || !high) continue;
    if (*high < *low) {
      errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' ends before it begins", part), "",
                        "--gpus", kAccepted});
    }
    for (std::int64_t count = *low; count <= *high; count *= 2) out.push_back(count);
  }
  if (!errors.empty()) return failure(std::move(errors));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace stepcast
