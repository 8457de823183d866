// SPDX-License-Identifier: Apache-2.0
#include "cluster/named_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "core/json.h"
#include "core/json_tree.h"

namespace stepcast {
namespace {

// A count as it is written in a name; too many digits are more than any cluster has, and refused
// as that.
std::optional<std::int64_t> count_in(std::string_view digits) {
  if (digits.empty() || !std::ranges::all_of(digits, [](unsigned char letter) {
        return std::isdigit(letter) != 0;
      })) {
    return std::nullopt;
  }
  std::int64_t count = 0;
  const auto [rest, status] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return status == std::errc() ? count : ObjectReader::kMaxCount;
}

bool calls(ObjectReader& reader, const char* key, const std::string& plain) {
  if (!reader.has(key)) return false;
  const SortedJson& names = reader.value(key)->raw();  // of the document
  return names.is_array() && std::ranges::any_of(names, [&](const SortedJson& name) {
           return name.is_string() && plain_name(name.get<std::string>()) == plain;
         });
}

}  // namespace

DataFolder shipped_clusters(const std::string& topologies_folder) {
  return {topologies_folder + "/clusters", "cluster"};
}

std::optional<ClusterName> find_cluster_name(const std::string& text,
                                             const std::string& topologies_folder) {
  const DataFolder folder = shipped_clusters(topologies_folder);
  if (folder.has(text)) return ClusterName{text};
  const std::string plain = plain_name(text);
  if (is_path(text) || plain.empty()) return std::nullopt;
  const auto shipped = folder.names().value_or(std::vector<std::string>());
  for (const std::string& name : shipped) {
    if (plain_name(name) == plain) return ClusterName{name};
  }
  for (const std::string& name : shipped) {
    const auto document = folder.open(name);
    if (!document) continue;  // whoever reads it says why
    ObjectReader reader((*document)->root());
    if (calls(reader, "names_of_card", plain)) return ClusterName{name, true, true};
    if (calls(reader, "names_of_node", plain)) return ClusterName{name, true, false};
  }
  return std::nullopt;
}

Error no_cluster(const std::string& text, const std::string& topologies_folder) {
  const auto known =
      shipped_clusters(topologies_folder).names().value_or(std::vector<std::string>());
  std::string hint;
  if (text.find(',') != std::string::npos) {
    hint = fmt::format(
        "`stepcast plan --clusters {0}` searches several, `compare --vary "
        "cluster={0}` sets them side by side",
        text);
  } else if (text == "all") {
    hint =
        "name those to search, as in dgx-h100,aws-p5; `stepcast show prices` lists those with a "
        "price";
  } else {
    hint = nearest_of(text, names_with(text, known), known);
  }
  if (hint.empty()) hint = "`stepcast show clusters` lists all; a GPU's name works too";
  return {ErrorCode::kNotFound, fmt::format("there is no cluster '{}'", text), "", "",
          std::move(hint)};
}

SortedJson named_cluster(const std::string& text, const std::string& topologies_folder) {
  const auto known = [&](const std::string& name) {
    return find_cluster_name(name, topologies_folder);
  };
  if (shipped_clusters(topologies_folder).has(text)) return {{"base", text}};
  const std::size_t last = text.rfind('x');
  if (last != std::string::npos && last > 0) {
    const std::string name = text.substr(0, last);
    const auto count = count_in(std::string_view(text).substr(last + 1));
    const auto found = count ? known(name) : std::nullopt;
    if (found) return {{"base", name}, {found->of_card ? "gpus" : "nodes", *count}};
    if (count && (is_path(name) || name == kLocalCluster))
      return {{"base", name}, {"nodes", *count}};
  }
  const std::size_t first = text.find('x');
  if (first != std::string::npos) {
    const std::string name = text.substr(first + 1);
    const auto count = count_in(std::string_view(text).substr(0, first));
    const auto found = count ? known(name) : std::nullopt;
    if (found) return {{"base", name}, {found->of_gpu ? "gpus" : "nodes", *count}};
  }
  return {{"base", text}};
}

void set_gpus(SortedJson& cluster, std::int64_t gpus, const std::string& topologies_folder) {
  if (cluster.is_string()) {
    cluster = named_cluster(cluster.get<std::string>(), topologies_folder);
  }
  cluster.erase("nodes");
  cluster["gpus"] = gpus;
}

}  // namespace stepcast
