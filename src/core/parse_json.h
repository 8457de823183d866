// SPDX-License-Identifier: Apache-2.0
// The only way from a text that somebody else wrote to JSON. It is refused while it is read when it
// nests deeper than kDeepestDocument: copying, printing and comparing JSON go one call deeper for
// each level.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/json_tree.h"
#include "core/result.h"

namespace stepcast {

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
