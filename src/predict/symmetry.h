// SPDX-License-Identifier: Apache-2.0
// Folding: ranks, groups, pairs and links that provably behave alike are one class. The classes are
// the coarsest equitable partition of the graph of ranks, groups and links, coloured by everything
// that prices them; max-min rates of the quotient equal those of the whole
// (docs/design/006-folding-by-equitable-partition.md).
#pragma once

#include <cstdint>
#include <vector>

#include "predict/traffic.h"

namespace stepcast {

struct Scenario;

// A link class's load per unit of rate of one group or pair class.
struct ClassLoad {
  std::int32_t link_class;
  double weight;
};

struct GroupClasses {
  std::vector<std::int32_t> class_of;                      // by orbit of groups
  std::vector<std::int32_t> representative;                // by class: an orbit
  std::vector<std::vector<std::vector<ClassLoad>>> loads;  // by class, distinct load
};

struct PairClasses {
  std::vector<std::int32_t> class_of;  // by orbit of pairs
  std::vector<std::int32_t> representative;
  std::vector<std::vector<ClassLoad>> loads;  // by class
};

// Holds what other jobs do on the links of the cluster, by LinkId; empty: there are none.
struct ForeignLinks {
  std::vector<double> demand;         // bytes/s, when all that they send is under way
  std::vector<std::int32_t> classes;  // links that they see alike; -1: they use none of them
  bool empty() const { return demand.empty(); }
};

struct Symmetry {
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::vector<RankId>> ranks;  // by class; the first is its representative
  std::vector<GroupClasses> groups;        // parallel to Traffic::groups
  std::vector<PairClasses> pairs;          // parallel to Traffic::pairs
  std::vector<double> link_capacity;       // by link class, bytes/s
  std::vector<LinkId> link;                // by link class: the lowest of them
  // By orbit of links: its class; -1: it cannot bind.
  std::vector<std::int32_t> class_of_link;
};

// Ranks, groups and links that the cluster itself carries into each other are one vertex
// (predict/orbits.h): edges are counted from both of their ends.
//
// Groups that send inside passes load no link of the step, but pay for those that they share with
// their siblings (predict/sibling_links.h): ranks are alike where these links lie alike too.
//
// `fold` false: every rank, group, pair and link its own class; then they have no orbits either.
//
// `foreign`: links that other jobs use are alike where these see them alike, too; with it traffic
// has no orbits.
Symmetry find_symmetry(const Scenario& scenario, const RankGrid& grid, const Traffic& traffic,
                       const CollectiveCosts& costs, bool fold, const ForeignLinks& foreign = {});

}  // namespace stepcast
