// SPDX-License-Identifier: Apache-2.0
// Slurm's topology.conf (slurm.schedmd.com/topology.conf.html): which nodes are under which switch
// (topology/tree), or in which block (topology/block).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

struct SlurmTopology {
  // A switch that has nodes, or a block.
  struct Leaf {
    std::string name;
    std::vector<std::string> nodes;
    std::size_t above = 0;  // of the switches that have leaves, in their order
  };
  std::vector<Leaf> leaves;  // in the order of the file: by this Slurm ranks nodes
  std::size_t switches_above = 1;
  bool are_blocks = false;

  struct Place {
    std::size_t leaf, inside;
  };
  std::map<std::string, Place, std::less<>> places() const;  // by node
};

Result<SlurmTopology> parse_slurm_topology(std::string_view text, const std::string& file);

}  // namespace stepcast
