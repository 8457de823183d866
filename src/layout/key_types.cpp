// SPDX-License-Identifier: Apache-2.0
#include "layout/key_types.h"

#include <charconv>
#include <string_view>

#include "core/json_tree.h"

namespace stepcast {

std::optional<std::int64_t> read_tokens(ObjectReader& object, const char* key, std::int64_t least,
                                        std::int64_t most) {
  const auto value = object.value(key);
  if (!value) return std::nullopt;
  if (!value->is_text()) return object.integer(key, least, most);
  const std::optional<std::string> stated = value->text();
  if (!stated) return std::nullopt;
  const std::string& text = *stated;
  std::int64_t tokens = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, tokens);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const std::int64_t factor = unit.empty()                 ? 1
                              : unit == "k" || unit == "K" ? 1024
                              : unit == "m" || unit == "M" ? 1024 * 1024
                                                           : 0;
  const bool read = status == std::errc() && factor > 0;
  if (!read || tokens < (least + factor - 1) / factor || tokens > most / factor) {
    value->fail(ErrorCode::kBadValue, fmt::format("'{}' is no number of tokens", text),
                fmt::format("{} to {}, or \"8k\" for 8192, \"1M\" for 1048576", least, most));
    return std::nullopt;
  }
  return tokens * factor;
}

void write_json(std::int64_t value, SortedJson& out) { out = value; }
void write_json(int value, SortedJson& out) { out = value; }
void write_json(bool value, SortedJson& out) { out = value; }
void write_json(double value, SortedJson& out) { out = value; }
void write_json(const char* value, SortedJson& out) { out = value; }
void write_json(const std::string& value, SortedJson& out) { out = value; }
void write_json(const std::vector<std::int64_t>& value, SortedJson& out) { out = value; }

}  // namespace stepcast
