// SPDX-License-Identifier: Apache-2.0
#include "core/parse_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/json_syntax.h"
#include "core/limits.h"

namespace stepcast {
namespace {

using nlohmann::json;

// Leaves the parser, which knows no other way to stop.
struct Refused {
  Error error;
};

// A key twice in one object: the parser would silently keep the last one.
class UniqueKeys {
 public:
  void open() { open_.emplace_back(); }
  void close() { open_.pop_back(); }
  void take(const std::string& key) {
    if (open_.back().insert(key).second) return;
    throw Refused{{ErrorCode::kSyntax, fmt::format("the key '{}' stands twice", key), "", key,
                   "keep one of them"}};
  }

 private:
  std::vector<std::set<std::string>> open_;
};

void check_depth(int levels) {
  if (levels < static_cast<int>(kDeepestDocument)) return;
  throw Refused{{ErrorCode::kSyntax, fmt::format("nests deeper than {} levels", kDeepestDocument),
                 "", "", "no file of this kind has more than ten"}};
}

template <class Json>
Result<Json> parse(std::string_view text, const std::string& file, const JsonRules& rules) {
  using Event = typename Json::parse_event_t;
  UniqueKeys keys;
  const auto take = [&](int levels, Event event, Json& value) {
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (opens) check_depth(levels);
    if (rules.unique_keys) {
      if (event == Event::object_start) keys.open();
      if (event == Event::object_end) keys.close();
      if (event == Event::key) keys.take(value.template get_ref<const std::string&>());
    }
    if constexpr (std::is_same_v<Json, json>) {
      if (event == Event::object_end && rules.keep_object) return rules.keep_object(value);
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), take, true, rules.comments);
  } catch (Refused& refused) {
    refused.error.file = file;
    return failure(std::move(refused.error));
  } catch (const typename Json::exception& error) {
    return failure({ErrorCode::kSyntax, why_not_json(text, error), file, "", ""});
  }
}

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& file, const JsonRules& rules) {
  return parse<json>(text, file, rules);
}

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const std::string& file) {
  return parse<nlohmann::ordered_json>(text, file, {});
}

}  // namespace stepcast
