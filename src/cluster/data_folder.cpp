// SPDX-License-Identifier: Apache-2.0
#include "cluster/data_folder.h"

#include <fmt/format.h>

#include "core/carried_files.h"
#include "core/json.h"

namespace stepcast {

bool DataFolder::has(const std::string& name) const {
  return !name.empty() && !is_path(name) && is_data_file(fmt::format("{}/{}.json", folder_, name));
}

Result<std::unique_ptr<JsonDocument>> DataFolder::open(const std::string& name) const {
  const bool path = is_path(name);
  if (!path && !has(name)) {
    const std::vector<std::string> known = names().value_or(std::vector<std::string>());
    std::string hint = did_you_mean(name, known);
    if (hint.empty()) hint = known.empty() ? folder_ + " is empty" : "one of " + one_of(known);
    return failure({ErrorCode::kNotFound, fmt::format("there is no {} '{}'", kind_, name), "", "",
                    std::move(hint)});
  }
  auto document = JsonDocument::load(path ? name : fmt::format("{}/{}.json", folder_, name));
  if (!document) return document;
  ObjectReader reader((*document)->root());
  if (!reader.is_format("stepcast_" + kind_, 1)) return failure((*document)->errors());
  return document;
}

std::vector<std::string> read_texts(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> out;
  const auto list = reader.value(key);
  if (!list) return out;
  for (const JsonValue& item : list->items()) {
    if (auto text = item.text()) out.push_back(std::move(*text));
  }
  return out;
}

}  // namespace stepcast
