// SPDX-License-Identifier: Apache-2.0
#include "predict/equitable_partition.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"

namespace stepcast {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

// The finalizer of SplitMix64: each bit of the result depends on all bits of the argument.
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Numbers of edges are whole, but for weights of one orbit that rounding tells apart.
std::uint64_t in_parts(double seen) {
  constexpr double kParts = 1 << 10;
  return static_cast<std::uint64_t>(std::llround(seen * kParts));
}

// A sum over the edges of a vertex. Sums commute, so the order of the edges does not matter, and a
// neighbour that changes its class is exchanged in place.
struct Signature {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  auto operator<=>(const Signature&) const = default;
};

// An edge into one class adds this to a signature.
class ClassTerm {
 public:
  explicit ClassTerm(std::int32_t class_id)
      : first_(scramble(static_cast<std::uint64_t>(class_id) + 0x9e3779b97f4a7c15U)),
        second_(scramble(static_cast<std::uint64_t>(class_id) + 0xd1b54a32d192ed03U)) {}
  Signature with(std::uint64_t label) const {
    return {scramble(first_ + label), scramble(second_ ^ label)};
  }

 private:
  std::uint64_t first_;
  std::uint64_t second_;
};

class Refinement {
 public:
  explicit Refinement(const WeightedGraph& graph)
      : graph_(graph),
        class_of_(graph.colour.size()),
        order_(graph.colour.size()),
        place_(graph.colour.size()),
        signatures_(graph.colour.size()) {
    colour_classes();
    sign_all();
  }

  std::vector<std::int32_t> run() {
    for (std::int32_t v = 0; at(v) < class_of_.size(); ++v) mark(v);
    while (!marked_classes_.empty()) {
      end_if_stopped();
      split_marked();
      for (const Change& change : changes_) announce(change);
      changes_.clear();
    }
    return numbered();
  }

 private:
  // The vertices of a class stand together in order_, the marked ones first.
  struct Class {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t marked = 0;
  };
  struct Change {
    std::int32_t vertex;
    std::int32_t from_class;
  };

  void colour_classes() {
    std::unordered_map<std::uint64_t, std::int32_t> known;
    for (std::size_t v = 0; v < class_of_.size(); ++v) {
      const auto fresh = static_cast<std::int32_t>(classes_.size());
      const auto [entry, inserted] = known.try_emplace(graph_.colour[v], fresh);
      if (inserted) classes_.emplace_back();
      class_of_[v] = entry->second;
      ++classes_[at(entry->second)].end;
    }
    std::int32_t begin = 0;
    for (Class& members : classes_) {
      members.begin = begin;
      begin += std::exchange(members.end, begin);
    }
    for (std::size_t v = 0; v < class_of_.size(); ++v) {
      const std::int32_t place = classes_[at(class_of_[v])].end++;
      order_[at(place)] = static_cast<std::int32_t>(v);
      place_[v] = place;
    }
  }

  void sign_all() {
    // Each edge stands in the rows of both ends, so it does not matter which end adds its term.
    for (std::size_t v = 0; v < class_of_.size(); ++v) {
      const ClassTerm term(class_of_[v]);
      for (std::int32_t e = graph_.begin[v]; e < graph_.begin[v + 1]; ++e) {
        const Signature added = term.with(graph_.label[at(e)]);
        Signature& around = signatures_[at(graph_.neighbour[at(e)])];
        around.first += added.first * graph_.seen[at(e)];
        around.second += added.second * graph_.seen[at(e)];
      }
    }
  }

  void mark(std::int32_t vertex) {
    Class& members = classes_[at(class_of_[at(vertex)])];
    const std::int32_t target = members.begin + members.marked;
    if (place_[at(vertex)] < target) return;
    if (members.marked++ == 0) marked_classes_.push_back(class_of_[at(vertex)]);
    const std::int32_t other = order_[at(target)];
    std::swap(order_[at(target)], order_[at(place_[at(vertex)])]);
    std::swap(place_[at(vertex)], place_[at(other)]);
  }

  void split_marked() {
    for (const std::int32_t id : marked_classes_) {
      const Class members = classes_[at(id)];
      classes_[at(id)].marked = 0;
      if (!is_uniform(members)) split(id, members);
    }
    marked_classes_.clear();
  }

  const Signature& signature_at(std::int32_t place) const {
    return signatures_[at(order_[at(place)])];
  }

  // Unmarked vertices share one signature, as they did when the class was last split.
  bool is_uniform(const Class& members) const {
    const Signature& common = signature_at(members.end - 1);
    for (std::int32_t p = members.begin; p < members.begin + members.marked; ++p) {
      if (signature_at(p) != common) return false;
    }
    return true;
  }

  void split(std::int32_t id, const Class& members) {
    // Marked vertices that agree with the unmarked ones go last, next to them.
    const Signature last = signature_at(members.end - 1);
    const auto begin = order_.begin() + members.begin;
    const Signature& first = signature_at(members.begin);
    const bool are_alike = std::all_of(begin, begin + members.marked, [&](std::int32_t vertex) {
      return signatures_[at(vertex)] == first;
    });
    if (!are_alike)
      std::sort(begin, begin + members.marked, [&](std::int32_t a, std::int32_t b) {
        const Signature& x = signatures_[at(a)];
        const Signature& y = signatures_[at(b)];
        const bool x_is_last = x == last;
        const bool y_is_last = y == last;
        return x_is_last != y_is_last ? y_is_last : x < y;
      });
    parts_.clear();
    for (std::int32_t p = members.begin; p < members.end; ++p) {
      place_[at(order_[at(p)])] = p;
      if (p == members.begin || signature_at(p) != signature_at(p - 1)) parts_.push_back({p, p, 0});
      if (p >= members.begin + members.marked) break;  // the rest is alike
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].end = i + 1 < parts_.size() ? parts_[i + 1].begin : members.end;
    }
    const auto largest = std::max_element(
        parts_.begin(), parts_.end(),
        [](const Class& a, const Class& b) { return a.end - a.begin < b.end - b.begin; });
    classes_[at(id)] = *largest;
    parts_.erase(largest);
    for (const Class& part : parts_) rename(part, id);
  }

  void rename(const Class& part, std::int32_t from_class) {
    const auto id = static_cast<std::int32_t>(classes_.size());
    classes_.push_back(part);
    for (std::int32_t p = part.begin; p < part.end; ++p) {
      class_of_[at(order_[at(p)])] = id;
      changes_.push_back({order_[at(p)], from_class});
    }
  }

  // Brings the signatures around a vertex with a new class up to date.
  void announce(const Change& change) {
    const ClassTerm before(change.from_class);
    const ClassTerm after(class_of_[at(change.vertex)]);
    for (std::int32_t e = graph_.begin[at(change.vertex)]; e < graph_.begin[at(change.vertex) + 1];
         ++e) {
      const std::int32_t neighbour = graph_.neighbour[at(e)];
      const Signature removed = before.with(graph_.label[at(e)]);
      const Signature added = after.with(graph_.label[at(e)]);
      const std::uint64_t times = graph_.seen[at(e)];
      signatures_[at(neighbour)].first += (added.first - removed.first) * times;
      signatures_[at(neighbour)].second += (added.second - removed.second) * times;
      mark(neighbour);
    }
  }

  std::vector<std::int32_t> numbered() const {
    std::vector<std::int32_t> number(classes_.size(), -1);
    std::vector<std::int32_t> result(class_of_.size());
    std::int32_t next = 0;
    for (std::size_t v = 0; v < result.size(); ++v) {
      std::int32_t& id = number[at(class_of_[v])];
      if (id < 0) id = next++;
      result[v] = id;
    }
    return result;
  }

  const WeightedGraph& graph_;
  std::vector<std::int32_t> class_of_;  // by vertex
  std::vector<std::int32_t> order_;     // vertices by class
  std::vector<std::int32_t> place_;     // by vertex: in order_
  std::vector<Signature> signatures_;   // by vertex
  std::vector<Class> classes_;
  std::vector<std::int32_t> marked_classes_;
  std::vector<Change> changes_;  // of this round
  std::vector<Class> parts_;     // of the class that is being split
};

}  // namespace

WeightedGraph weighted_graph(std::vector<std::uint64_t> colour,
                             const std::vector<LabelledEdge>& edges) {
  WeightedGraph graph;
  graph.begin.assign(colour.size() + 1, 0);
  graph.colour = std::move(colour);
  for (const LabelledEdge& edge : edges) {
    ++graph.begin[at(edge.from) + 1];
    ++graph.begin[at(edge.to) + 1];
  }
  std::partial_sum(graph.begin.begin(), graph.begin.end(), graph.begin.begin());
  graph.neighbour.resize(2 * edges.size());
  graph.label.resize(2 * edges.size());
  graph.seen.resize(2 * edges.size());
  auto next = graph.begin;
  const auto put = [&](std::int32_t from, std::int32_t to, std::uint64_t label, double seen) {
    const std::size_t place = at(next[at(from)]++);
    graph.neighbour[place] = to;
    graph.label[place] = label;
    graph.seen[place] = in_parts(seen);
  };
  for (const LabelledEdge& edge : edges) {
    put(edge.from, edge.to, edge.label, edge.seen_by_to);
    put(edge.to, edge.from, edge.label, edge.seen_by_from);
  }
  return graph;
}

std::vector<std::int32_t> equitable_partition(const WeightedGraph& graph) {
  STEPCAST_ASSERT(graph.begin.size() == graph.colour.size() + 1, "a row for every vertex");
  STEPCAST_ASSERT(
      graph.neighbour.size() == graph.label.size() && graph.neighbour.size() == graph.seen.size(),
      "a label and a number for every edge");
  return Refinement(graph).run();
}

}  // namespace stepcast
