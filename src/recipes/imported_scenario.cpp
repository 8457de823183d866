// SPDX-License-Identifier: Apache-2.0
#include "recipes/imported_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr std::string_view kMark = "# stepcast: ";
constexpr std::int64_t kMaxDegree = 1 << 20;

}  // namespace

void ImportedScenario::set_json(std::string path, std::string value, std::string origin) {
  settings.push_back({std::move(path), std::move(value), std::move(origin)});
}

void ImportedScenario::set_integer(std::string path, std::int64_t value, std::string origin) {
  set_json(std::move(path), fmt::format("{}", value), std::move(origin));
}

void ImportedScenario::set_flag(std::string path, bool value, std::string origin) {
  set_json(std::move(path), value ? "true" : "false", std::move(origin));
}

void ImportedScenario::set_number(std::string path, double value, std::string origin) {
  set_json(std::move(path), json_text(SortedJson(value)), std::move(origin));
}

void ImportedScenario::set_word(std::string path, std::string_view value, std::string origin) {
  set_json(std::move(path), json_literal(value), std::move(origin));
}

const Setting* ImportedScenario::find(std::string_view path) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(),
                                  [&](const Setting& setting) { return setting.path == path; });
  return found == settings.rend() ? nullptr : &*found;
}

std::optional<std::int64_t> ImportedScenario::integer(std::string_view path) const {
  const Setting* setting = find(path);
  if (!setting) return std::nullopt;
  const auto value = parse_json(setting->value, "");
  if (!value || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::int64_t ImportedScenario::degree(std::string_view path) const {
  return std::clamp<std::int64_t>(integer(path).value_or(1), 1, kMaxDegree);
}

void ImportedScenario::fail(ErrorCode code, std::string key, std::string message,
                            std::string hint) {
  errors.push_back({code, std::move(message), file, std::move(key), std::move(hint)});
}

std::string remark_lines(const std::vector<Setting>& remarks) {
  std::string out;
  for (const Setting& remark : remarks) {
    out += fmt::format("{}{}={}\n", kMark, remark.path, remark.value);
  }
  return out;
}

std::vector<Setting> settings_in_remarks(std::string_view text) {
  std::vector<Setting> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kMark) || equals == std::string_view::npos) continue;
    out.push_back({std::string(line.substr(kMark.size(), equals - kMark.size())),
                   std::string(line.substr(equals + 1)), ""});
  }
  return out;
}

}  // namespace stepcast
