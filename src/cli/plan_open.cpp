// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_open.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/plan_flags.h"
#include "core/json_tree.h"
#include "plan/layout_dimension.h"

namespace stepcast::cli {
namespace {

// Follows from the other dimensions.
constexpr const char* kFollows = "layout.dp";
// A split of layers is made for one pipeline.
constexpr const char* kSplit = "layout.stage_layers";
constexpr std::array kPipeline = {"layout.pp", "layout.virtual_stages", "layout.schedule"};

bool stands_below(std::string_view path, std::string_view above) {
  return path == above || (path.starts_with(above) && path.substr(above.size()).starts_with('.'));
}

// Takes a key out, and the objects that are empty without it. An object may be written short, as
// the text of its first key.
void take_out(std::string_view path, SortedJson& node) {
  if (!node.is_object()) return;
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  const auto found = node.find(key);
  if (found == node.end()) return;
  if (dot != std::string_view::npos && found->is_object()) {
    take_out(path.substr(dot + 1), *found);
    if (!found->empty()) return;
  }
  node.erase(key);
}

bool states(std::string_view path, const SortedJson& node) {
  const std::size_t dot = path.find('.');
  const auto found = node.is_object() ? node.find(path.substr(0, dot)) : node.end();
  if (found == node.end() || dot == std::string_view::npos) return found != node.end();
  return found->is_object() ? states(path.substr(dot + 1), *found) : true;
}

// Keys that follow from others, in the order in which a question opens them.
const std::vector<std::vector<std::string>>& dependants() {
  static const std::vector<std::vector<std::string>> groups = {
      {"layout.dp"},
      {"layout.pp", "layout.cp", "layout.tp"},
      {"layout.micro_batch", "layout.schedule", "layout.virtual_stages", kSplit},
      {"layout.ep", "layout.etp"}};
  return groups;
}

// The keys of the layout behind an error's path.
std::vector<std::string> named_keys(const std::string& path) {
  if (path.starts_with("training.global_batch")) return {"layout.micro_batch"};
  return {path};
}

}  // namespace

std::vector<std::string> open_dependants(const Errors& rules, const std::string& question,
                                         SortedJson& scenario) {
  const auto is_free = [&](const std::string& path) {
    const std::string key = path.starts_with("layout.") ? path.substr(7) : path;
    const bool asked = ("," + question).find("," + key + "=") != std::string::npos ||
                       ("," + question).find("," + path + "=") != std::string::npos;
    return path.starts_with("layout.") && !asked && states(path, scenario);
  };
  std::vector<std::string> out;
  const auto open = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (!is_free(path)) continue;
      take_out(path, scenario);
      out.push_back(path.substr(7));
    }
  };
  for (const Error& rule : rules) open(named_keys(rule.path));
  for (const auto& group : dependants()) {
    if (out.empty()) open(group);
  }
  return out;
}

Errors open_keys(const std::vector<std::string>& keys, const std::set<std::string>& given,
                 SortedJson& scenario) {
  Errors errors;
  std::set<std::string> opened;
  for (const std::string& key : keys) {
    const bool all = key == "all";
    const std::string path = layout_path(key);
    bool known = false;
    std::vector<std::string> names;
    for (const LayoutDimension& dimension : layout_dimensions()) {
      names.emplace_back(
          std::string_view(dimension.path).substr(std::string_view("layout.").size()));
      if (!all && !stands_below(dimension.path, path)) continue;
      known = true;
      const bool fixed = std::ranges::any_of(
          given, [&](const std::string& flag) { return stands_below(dimension.path, flag); });
      if (!fixed) {
        opened.insert(dimension.path);
      } else if (!all) {
        errors.push_back({ErrorCode::kIllegal, fmt::format("a flag fixes {}", dimension.path), "",
                          "--open", "leave one of the two out"});
      }
    }
    if (known) continue;
    const std::string near = did_you_mean(key, names);
    errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' is no key that a search varies", key),
                      "", "--open", near.empty() ? "all, or some of " + one_of(names) : near});
  }
  if (!errors.empty()) return errors;
  const auto is_opened = [&](const char* path) { return opened.contains(path); };
  if (std::ranges::any_of(kPipeline, is_opened)) opened.insert(kSplit);
  opened.insert(kFollows);
  for (const std::string& path : opened) {
    if (!given.contains(path)) take_out(path, scenario);
  }
  return {};
}

}  // namespace stepcast::cli
