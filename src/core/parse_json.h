// SPDX-License-Identifier: Apache-2.0
// The only way from a text that somebody else wrote to JSON. It is refused while it is read when it
// nests deeper than kDeepestDocument, because copying, printing and comparing JSON go one call
// deeper for each level, and when it has more values than kMostJsonValues.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/json_tree.h"
#include "core/result.h"

namespace stepcast {

// Each takes some 100 bytes of memory while it is read, of text as few as two. A file that people
// or programs write has ten and more for each.
inline constexpr std::size_t kMostJsonValues = std::size_t{1} << 22;

struct JsonRules {
  bool comments = false;  // are skipped
  bool unique_keys = false;
  // Takes each object that has been read whole, and says whether it stays in the document.
  std::function<bool(SortedJson& object)> keep_object = {};
};

Result<SortedJson> parse_json(std::string_view text, const std::string& file,
                              const JsonRules& rules = {});
// Keeps the order of keys.
Result<Json> parse_ordered_json(std::string_view text, const std::string& file);

}  // namespace stepcast
