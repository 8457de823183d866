// SPDX-License-Identifier: Apache-2.0
#include "cluster/failed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/assert.h"
#include "core/unit_text.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostNear = 20'000;  // names among which a near one is looked for

std::optional<VertexId> vertex_named(const Topology& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    if (graph.name(VertexId(i)) == name) return VertexId(i);
  }
  return std::nullopt;
}

struct Part {
  VertexId one, other;  // `other` is not valid where the part is a vertex
};

bool is_cable(const Topology& graph, VertexId one, VertexId other) {
  const LinkRange out = graph.out_links(one);
  return std::any_of(out.begin(), out.end(),
                     [&](LinkId id) { return graph.links()[id.index()].to == other; });
}

// Names hold dashes in files of one's own, so every dash may be the one between two ends.
std::optional<Part> find_part(const Topology& graph, std::string_view text) {
  if (const auto vertex = vertex_named(graph, text)) return Part{*vertex, {}};
  for (std::size_t dash = text.find('-'); dash != std::string_view::npos;
       dash = text.find('-', dash + 1)) {
    const auto one = vertex_named(graph, text.substr(0, dash));
    const auto other = vertex_named(graph, text.substr(dash + 1));
    if (one && other && is_cable(graph, *one, *other)) return Part{*one, *other};
  }
  return std::nullopt;
}

// The cables that a failure of a vertex cuts: a NIC loses its cable and stays on PCIe.
bool concerns(const Topology& graph, const Part& part, const Link& link) {
  if (part.other.valid()) {
    return (link.from == part.one && link.to == part.other) ||
           (link.from == part.other && link.to == part.one);
  }
  if (link.from != part.one && link.to != part.one) return false;
  const VertexKind kind = graph.vertices()[part.one.index()].kind;
  return kind != VertexKind::kNic || link.kind == LinkKind::kNic;
}

BytesPerSecond widest(const Topology& graph, const Part& part) {
  BytesPerSecond out;
  for (const Link& link : graph.links()) {
    if (concerns(graph, part, link)) out = std::max(out, link.capacity);
  }
  return out;
}

Error no_part(std::string_view text, const Topology& graph) {
  std::vector<std::string> names;
  if (graph.vertices().size() <= kMostNear) {
    for (std::size_t i = 0; i < graph.vertices().size(); ++i)
      names.push_back(graph.name(VertexId(i)));
  }
  const std::string near = did_you_mean(text, names);
  return {ErrorCode::kNotFound, fmt::format("the cluster has no part '{}'", text), "", "",
          near.empty() ? "node0/nic0, node0/gpu0 or two ends such as leaf0-spine0; topology show "
                         "--format json lists them"
                       : near};
}

std::optional<double> share_of(std::string_view text, BytesPerSecond whole) {
  if (text.ends_with('%')) {
    double percent = 0;
    const char* end = text.data() + text.size() - 1;
    const auto read = std::from_chars(text.data(), end, percent);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return percent / 100;
  }
  const auto rate = parse_rate(text);
  if (!rate || !(whole.value() > 0)) return std::nullopt;
  return *rate / whole;
}

}  // namespace

Result<FailedPart> parse_failed_part(std::string_view text, const Topology& whole) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto part = find_part(whole, name);
  if (!part) return failure(no_part(name, whole));
  FailedPart out{std::string(name), 0};
  if (equals == std::string_view::npos) return out;
  const std::string_view left = text.substr(equals + 1);
  const bool gpu =
      !part->other.valid() && whole.vertices()[part->one.index()].kind == VertexKind::kGpu;
  const auto share = gpu ? std::nullopt : share_of(left, widest(whole, *part));
  if (!share || !(*share >= 0) || !(*share <= 1)) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is not what is left of {}", left, name),
                    "", "",
                    gpu ? "a GPU is there or not: leave it out"
                        : "a share such as 50%, or a rate up to its own such as \"100 Gb/s\""});
  }
  out.left = *share;
  return out;
}

std::string text_of(const FailedPart& part) {
  return part.left > 0 ? fmt::format("{}={}%", part.part, 100 * part.left) : part.part;
}

Topology without_failed(const Topology& whole, const std::vector<FailedPart>& parts) {
  std::vector<double> left(whole.links().size(), 1);
  std::vector<bool> gone(whole.vertices().size(), false);
  for (const FailedPart& failed : parts) {
    const auto part = find_part(whole, failed.part);
    STEPCAST_ASSERT(part.has_value(), "a failed part is one of the graph's");
    const bool vertex = !part->other.valid();
    if (vertex && whole.vertices()[part->one.index()].kind == VertexKind::kGpu) {
      gone[part->one.index()] = true;
    }
    for (std::size_t i = 0; i < whole.links().size(); ++i) {
      if (concerns(whole, *part, whole.links()[i])) left[i] *= failed.left;
    }
  }
  // A switch all of whose cables are gone is gone with them.
  std::vector<bool> linked(whole.vertices().size(), false);
  for (std::size_t i = 0; i < whole.links().size(); ++i) {
    const Link& link = whole.links()[i];
    if (!(left[i] > 0) || gone[link.from.index()] || gone[link.to.index()]) continue;
    linked[link.from.index()] = linked[link.to.index()] = true;
  }
  for (std::size_t i = 0; i < linked.size(); ++i) {
    const bool gpu = whole.vertices()[i].kind == VertexKind::kGpu;
    if (!gpu && !linked[i] && !whole.out_links(VertexId(i)).empty()) gone[i] = true;
  }
  Topology out;
  out.reserve(whole.vertices().size(), whole.links().size());
  std::vector<VertexId> now(whole.vertices().size());
  for (std::size_t i = 0; i < whole.vertices().size(); ++i) {
    if (gone[i]) continue;
    // Names follow from kind, node and index, or were given.
    now[i] = out.add_vertex(whole.vertices()[i], whole.given_name(VertexId(i)));
  }
  for (std::size_t i = 0; i < whole.links().size(); ++i) {
    Link link = whole.links()[i];
    link.from = now[link.from.index()];
    link.to = now[link.to.index()];
    link.capacity *= left[i];
    if (left[i] > 0 && link.from.valid() && link.to.valid()) out.add_link(link);
  }
  return out;
}

}  // namespace stepcast
