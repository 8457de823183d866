// SPDX-License-Identifier: Apache-2.0
// The graph of a cluster as a picture: switches of the fabric above, then NICs, PCIe switches and
// GPUs of a few nodes, NVSwitches below. A cable is as dark and as wide as the busier of its two
// directions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast {
class Topology;
}

namespace stepcast::html {

struct PicturedNode {
  std::int64_t node = 0;
  std::string title;  // of all nodes that look alike
};

// `busy`: the share of the step in which each link is full. Nothing where there is no node to show.
Html fabric_picture(const Topology& topology, const std::vector<double>& busy,
                    const std::vector<PicturedNode>& nodes);

}  // namespace stepcast::html
