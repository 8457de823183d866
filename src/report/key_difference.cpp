// SPDX-License-Identifier: Apache-2.0
#include "report/key_difference.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/json_tree.h"
#include "core/text/characters.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr std::size_t kLongest = 40;  // characters of a value

// A scenario's parts in the order in which people describe a run.
constexpr std::array<std::string_view, 5> kParts = {"model", "cluster", "training", "layout",
                                                    "profile"};

std::size_t part_of(std::string_view key) {
  const std::string_view part = key.substr(0, key.find('.'));
  return static_cast<std::size_t>(
      std::distance(kParts.begin(), std::find(kParts.begin(), kParts.end(), part)));
}

// When the key on the left differs, all else below the object on the right is of another thing:
// only what is listed is said of it.
struct Naming {
  std::string_view key, object;
  std::array<std::string_view, 2> still_said;
};
constexpr std::array kNamings = {
    Naming{"model", "model", {}},
    Naming{"model.name", "model", {}},
    Naming{"cluster", "cluster", {}},
    Naming{"cluster.base", "cluster", {"cluster.gpus", "cluster.nodes"}},
    Naming{"cluster.name", "cluster", {"cluster.gpus", "cluster.nodes"}},
};

using Flat = std::map<std::string, std::string>;

void flatten(const SortedJson& value, const std::string& path, Flat& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, below] : value.items()) {
      flatten(below, path.empty() ? key : path + "." + key, out);
    }
  } else {
    out[path] =
        shortened(value.is_string() ? value.get<std::string>() : json_text(value), kLongest);
  }
}

// A name stands for what a resolved scenario writes out.
SortedJson as_resolved(SortedJson stated) {
  if (!stated.is_object()) return stated;
  if (stated.contains("model") && stated["model"].is_string()) {
    stated["model"] = SortedJson{{"name", stated["model"]}};
  }
  if (stated.contains("cluster") && stated["cluster"].is_string()) stated.erase("cluster");
  return stated;
}

bool hidden_by(const Naming& naming, const std::string& key) {
  return key != naming.key && key.starts_with(std::string(naming.object) + ".") &&
         std::find(naming.still_said.begin(), naming.still_said.end(), key) ==
             naming.still_said.end();
}

std::optional<KeyDifference> difference_of(const std::string& key, const std::vector<Flat>& flats,
                                           const std::vector<ComparedDocument>& documents) {
  KeyDifference out{key, {}};
  std::set<std::string> told;
  for (std::size_t i = 0; i < flats.size(); ++i) {
    const auto found = flats[i].find(key);
    const bool there = found != flats[i].end();
    out.values.push_back(there ? found->second : "-");
    if (there || documents[i].resolved) told.insert(out.values.back());
  }
  if (told.size() < 2) return std::nullopt;
  return out;
}

}  // namespace

std::vector<KeyDifference> key_differences(const std::vector<ComparedDocument>& documents) {
  std::vector<Flat> flats;
  std::set<std::string> keys;
  for (const ComparedDocument& document : documents) {
    flatten(document.resolved ? document.scenario : as_resolved(document.scenario), "",
            flats.emplace_back());
    for (const auto& [key, value] : flats.back()) keys.insert(key);
  }
  std::vector<KeyDifference> out;
  for (const std::string& key : keys) {
    if (auto one = difference_of(key, flats, documents)) out.push_back(std::move(*one));
  }
  for (const Naming& naming : kNamings) {
    const bool differs = std::any_of(
        out.begin(), out.end(), [&](const KeyDifference& one) { return one.key == naming.key; });
    if (!differs) continue;
    out.erase(std::remove_if(out.begin(), out.end(),
                             [&](const KeyDifference& one) { return hidden_by(naming, one.key); }),
              out.end());
  }
  std::stable_sort(out.begin(), out.end(), [](const KeyDifference& a, const KeyDifference& b) {
    return part_of(a.key) < part_of(b.key);
  });
  return out;
}

}  // namespace stepcast
