// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/data_folder.h"
#include "cluster/host_list.h"
#include "cluster/slurm_topology.h"
#include "core/json.h"
#include "core/text_file.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostPlaceFile = 16 << 20;
constexpr const char* kPlaceExample = "as in node[4-7,0-3], or node1/gpu[0-7],node0/gpu[0-7]";

// The first word of each line: what else stands there (slots=8) is of others.
std::string first_words(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, std::min(text.find('#', begin), end) - begin);
    begin = end + 1;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    const std::size_t after = std::min(line.find_first_of(" \t\r", first), line.size());
    out += line.substr(first, after - first) + ",";
  }
  return out;
}

std::optional<std::int64_t> number_behind(std::string_view name, std::string_view prefix) {
  std::int64_t out = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size(), end, out);
  const bool is_number = read.ec == std::errc() && read.ptr == end && out >= 0;
  return is_number ? std::optional(out) : std::nullopt;
}

class PlaceReader {
 public:
  PlaceReader(ObjectReader& reader, ClusterSpec& spec) : reader_(reader), spec_(spec) {}

  void read() {
    const auto names = listed();
    if (!names) return;
    if (reader_.has("slurm_topology")) return by_switch(*names);
    if (names->empty()) return;
    forget();
    if (names->front().find('/') == std::string::npos) {
      by_nodes(*names);
    } else {
      by_devices(*names);
    }
  }

 private:
  void fail(const char* key, std::string message, std::string hint = kPlaceExample) {
    reader_.fail(key, ErrorCode::kIllegal, std::move(message), std::move(hint));
  }

  // Nothing after an error; empty where nothing is stated.
  std::optional<std::vector<std::string>> listed() {
    const auto value = reader_.value("place");
    if (!value) return std::vector<std::string>();
    std::string text;
    if (value->is_text()) {
      text = value->text().value_or("");
    } else {
      for (const std::string& one : read_texts(reader_, "place")) text += one + ",";
    }
    if (text.ends_with(".txt")) {
      const auto file = read_text_file(text, {.most_bytes = kMostPlaceFile});
      if (!file) {
        fail("place", to_string(file.error()), "a file with a host in each line");
        return std::nullopt;
      }
      text = first_words(*file);
    }
    auto names = expand_hosts(text);
    if (!names) {
      reader_.fail("place", names.error().front().code, names.error().front().message,
                   names.error().front().hint);
      return std::nullopt;
    }
    if (names->empty()) fail("place", "names no node");
    if (names->empty()) return std::nullopt;
    return std::move(*names);
  }

  bool has_all(const std::vector<std::string>& names, std::int64_t count, const char* what) {
    const auto given = static_cast<std::int64_t>(names.size());
    if (given != count) {
      fail("place", fmt::format("names {} {}, and the cluster has {}", given, what, count));
    }
    std::vector<std::string> sorted = names;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) fail("place", fmt::format("names {} twice", *twice));
    return given == count && twice == sorted.end();
  }

  void forget() {
    Fabric& fabric = spec_.fabric;
    fabric.places.clear();
    fabric.devices.clear();
    fabric.hosts.clear();
    fabric.slurm_topology.clear();
  }

  void by_nodes(const std::vector<std::string>& names) {
    if (!has_all(names, spec_.nodes, "nodes")) return;
    for (const std::string& name : names) {
      const auto place = number_behind(name, "node");
      if (!place || *place >= kMaxGpus) {
        fail("place", fmt::format("'{}' is no node by its number", name),
             "node0 is the first under the first leaf; names of your own need slurm_topology");
        spec_.fabric.places.clear();
        return;
      }
      spec_.fabric.places.push_back(static_cast<std::int32_t>(*place));
    }
    spec_.fabric.hosts = names;
  }

  // All GPUs, in the order of ranks.
  void by_devices(const std::vector<std::string>& names) {
    if (!has_all(names, spec_.gpus, "GPUs")) return;
    for (const std::string& name : names) {
      const std::size_t slash = name.find('/');
      const auto node = number_behind(name.substr(0, slash), "node");
      const auto gpu =
          slash == std::string::npos ? std::nullopt : number_behind(name.substr(slash + 1), "gpu");
      const std::int64_t place = node.value_or(0) * spec_.gpus_per_node + gpu.value_or(0);
      if (!node || !gpu || *node >= spec_.nodes || *gpu >= spec_.gpus_per_node ||
          place >= spec_.gpus) {
        fail("place", fmt::format("'{}' is no GPU of the cluster", name));
        spec_.fabric.devices.clear();
        return;
      }
      spec_.fabric.devices.push_back(static_cast<std::int32_t>(place));
    }
  }

  void by_switch(const std::vector<std::string>& names) {
    const auto path = reader_.text("slurm_topology");
    if (!path) return;
    const auto text = read_text_file(*path, {.most_bytes = kMostPlaceFile});
    const auto topology =
        text ? parse_slurm_topology(*text, *path) : Result<SlurmTopology>(failure(text.error()));
    if (!topology) {
      const Error& error = topology.error().front();
      reader_.fail("slurm_topology", error.code, to_string(error));
      return;
    }
    if (spec_.fabric.kind != FabricKind::kFatTree) {
      return fail("slurm_topology", "places nodes under the leaves of a fat tree",
                  "leave it out, or fabric fat_tree");
    }
    if (take_leaves(*topology)) place(*topology, names);
  }

  // The file says how many nodes a leaf has, and leaves a spine, where the cluster does not.
  bool take_leaves(const SlurmTopology& topology) {
    std::size_t largest = 0;
    std::vector<std::size_t> leaves_above(topology.switches_above, 0);
    for (const SlurmTopology::Leaf& leaf : topology.leaves) {
      largest = std::max(largest, leaf.nodes.size());
      ++leaves_above[leaf.above];
    }
    const auto nodes = static_cast<std::int64_t>(largest);
    if (!reader_.has("nodes_per_leaf_group")) spec_.nodes_per_leaf_group = nodes;
    if (spec_.nodes_per_leaf_group < nodes) {
      fail("nodes_per_leaf_group",
           fmt::format("{} nodes under a leaf, and the file has {} under one",
                       spec_.nodes_per_leaf_group, nodes),
           fmt::format("{}, or leave it out", nodes));
      return false;
    }
    leaves_of_pod_ = *std::ranges::max_element(leaves_above);
    const std::int64_t pod = static_cast<std::int64_t>(leaves_of_pod_) * spec_.nodes_per_leaf_group;
    const bool has_others = reader_.has("pod_nodes") && spec_.pod_nodes != pod;
    has_pods_ = topology.switches_above > 1 && !has_others;
    if (has_pods_) spec_.pod_nodes = pod;
    return true;
  }

  // Nodes in the order of their leaves in the file, as Slurm's SwitchAsNodeRank has them.
  void place(const SlurmTopology& topology, const std::vector<std::string>& names) {
    const auto known = topology.places();
    std::vector<SlurmTopology::Place> taken;
    for (const std::string& name : names) {
      const auto found = known.find(name);
      if (found == known.end()) {
        return fail("place", fmt::format("{} stands under no switch of the file", name),
                    "nodes by the names that slurm_topology has");
      }
      taken.push_back(found->second);
    }
    for (const SlurmTopology::Leaf& leaf : topology.leaves) {
      const auto index = static_cast<std::size_t>(&leaf - topology.leaves.data());
      for (std::size_t i = 0; names.empty() && i < leaf.nodes.size(); ++i) {
        if (static_cast<std::int64_t>(taken.size()) < spec_.nodes) taken.push_back({index, i});
      }
    }
    if (static_cast<std::int64_t>(taken.size()) != spec_.nodes ||
        (!names.empty() && !has_all(names, spec_.nodes, "nodes"))) {
      return fail(names.empty() ? "slurm_topology" : "place",
                  fmt::format("{} nodes, and the cluster has {}", taken.size(), spec_.nodes),
                  "as many as \"nodes\" says");
    }
    const auto by_leaf = [](const SlurmTopology::Place& p) { return std::pair(p.leaf, p.inside); };
    std::ranges::sort(taken, {}, by_leaf);
    if (!keeps_domains(topology, taken)) return;
    put(topology, taken);
  }

  bool keeps_domains(const SlurmTopology& topology,
                     const std::vector<SlurmTopology::Place>& taken) {
    const auto span = static_cast<std::size_t>(spec_.nvlink_domain_nodes);
    for (std::size_t i = 0; topology.are_blocks && i < taken.size(); ++i) {
      if (taken[i].leaf == taken[i / span * span].leaf) continue;
      fail("place",
           fmt::format("nodes {} and {} are of one NVLink domain and stand in blocks {} and {}",
                       i / span * span, i, topology.leaves[taken[i / span * span].leaf].name,
                       topology.leaves[taken[i].leaf].name),
           "as many nodes of each block as nvlink_domain_nodes says");
      return false;
    }
    return true;
  }

  void put(const SlurmTopology& topology, const std::vector<SlurmTopology::Place>& taken) {
    std::vector<std::size_t> of_leaf(topology.leaves.size());  // counted pod by pod
    std::vector<std::size_t> next(topology.switches_above, 0);
    for (std::size_t i = 0; i < of_leaf.size(); ++i) {
      const std::size_t above = topology.leaves[i].above;
      of_leaf[i] = has_pods_ ? above * leaves_of_pod_ + next[above]++ : i;
    }
    forget();
    spec_.fabric.slurm_topology = *reader_.text("slurm_topology");
    for (const SlurmTopology::Place& p : taken) {
      spec_.fabric.hosts.push_back(topology.leaves[p.leaf].nodes[p.inside]);
      const std::size_t place =
          of_leaf[p.leaf] * static_cast<std::size_t>(spec_.nodes_per_leaf_group) + p.inside;
      spec_.fabric.places.push_back(static_cast<std::int32_t>(
          std::min<std::size_t>(place, static_cast<std::size_t>(kMaxGpus))));
    }
  }

  ObjectReader& reader_;
  ClusterSpec& spec_;
  std::size_t leaves_of_pod_ = 0;
  bool has_pods_ = false;
};

}  // namespace

void read_place_fields(ObjectReader& reader, ClusterSpec& spec) {
  PlaceReader(reader, spec).read();
}

std::string place_text(const ClusterSpec& spec) {
  std::vector<std::string> names = spec.fabric.hosts;
  for (const std::int32_t gpu : spec.fabric.devices) {
    names.push_back(
        fmt::format("node{}/gpu{}", gpu / spec.gpus_per_node, gpu % spec.gpus_per_node));
  }
  return compress_hosts(names);
}

bool is_in_order(const ClusterSpec& spec) {
  return std::ranges::is_sorted(spec.fabric.places) && std::ranges::is_sorted(spec.fabric.devices);
}

}  // namespace stepcast
