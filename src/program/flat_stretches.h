// SPDX-License-Identifier: Apache-2.0
// The trained parameters of a role lie among its flat ones in stretches: one for each group of
// ranks that reduces and shards parameters, and in it block after block.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

class AxisGroup;
struct Block;
struct ElementRange;
struct Program;
struct Role;

// Takes over `elements` trained elements of a parameter of the group into the block's sums.
void count_in_group(Block& block, AxisGroup group, std::int64_t elements);

// Lays out the stretches of a role from its chunks, and counts its parameters. Chunks stand one
// after the other, blocks in model order. `root_first`: the first and the last block of a chunk
// stand together in front, because they are gathered as one unit.
void place_parameters(const Program& program, bool root_first, Role& role);

// Finds the place of a block's weight; `block` is the block's place in the chunk. The range is
// empty for weights that are borrowed or frozen.
ElementRange weight_range(const Program& program, const Role& role, std::size_t chunk,
                          std::size_t block, std::size_t weight);

}  // namespace stepcast
