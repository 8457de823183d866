// SPDX-License-Identifier: Apache-2.0
// Flows that do not spread (ECMP): at a switch from which several equal ways lead on, a flow takes
// one of them by a hash, so that flows meet on some links and leave others idle.
#pragma once

#include <vector>

#include "cluster/topology.h"

namespace stepcast {

// `even`: fractions of all shortest ways. Ways that part at a NIC or a GPU keep them: messages are
// cut for these. Same arguments, same ways.
std::vector<LinkShare> hashed_ways(const Topology& graph, const std::vector<LinkShare>& even,
                                   VertexId from, VertexId to);

}  // namespace stepcast
