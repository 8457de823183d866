// SPDX-License-Identifier: Apache-2.0
// The coarsest equitable partition of a coloured graph with labelled edges: vertices of one class
// have one colour, and for every label and every class they have equally many edges of that label
// into that class. What is symmetric always shares a class (the orbits of the graph's symmetries
// refine this partition), and a fluid network's max-min rates are constant on its classes.
//
// Partition refinement in O((V + E) log V): only what lies next to a changed class is looked at
// again, and the largest part of a split class keeps its name (Paige & Tarjan 1987, section 3).
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// Undirected: every edge stands in the rows of both of its ends, with the same label there.
struct WeightedGraph {
  std::vector<std::uint64_t> colour;    // by vertex
  std::vector<std::int32_t> begin;      // by vertex, one more at the end: into the next two
  std::vector<std::int32_t> neighbour;  // by end of an edge
  std::vector<std::uint64_t> label;     // by end of an edge: a kind, or the bits of a weight
  std::vector<std::uint64_t> seen;      // by end of an edge: so many its neighbour has of it
};

// A vertex may stand for several that are alike. Then each of them has so many edges of this label
// to those that the other vertex stands for.
struct LabelledEdge {
  std::int32_t from, to;
  std::uint64_t label = 0;
  double seen_by_from = 1, seen_by_to = 1;
};
// Each edge stands in the rows of its ends, in the order given here.
WeightedGraph weighted_graph(std::vector<std::uint64_t> colour,
                             const std::vector<LabelledEdge>& edges);

// By vertex: its class. Classes are numbered 0, 1, ... in the order of their smallest vertices.
//
// Two different neighbourhoods are told apart by 128 bits: a collision would need 10^18 vertices.
std::vector<std::int32_t> equitable_partition(const WeightedGraph& graph);

}  // namespace stepcast
