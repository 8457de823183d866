// SPDX-License-Identifier: Apache-2.0
// How long the passes of a pipeline take, and what they hold meanwhile, for schedules that fit
// weight gradients into gaps. The unit is anyone's: only ratios matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

struct ChunkTimes {  // of one micro-batch
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  // Share of what a forward leaves in memory that lives until the weight gradient has run; the rest
  // goes with the input gradient.
  double kept = 0.5;
  // Memory that lives until the input gradient has run, and from then on until the weight gradient
  // has, in the unit of PassTimes::room.
  double activations = 1;
  double waiting = kept * activations;
};

struct PassTimes {
  std::vector<std::vector<ChunkTimes>> chunks;  // by stage, then by local chunk; empty: all alike
  double hop = 0;             // from the end of a pass until the neighbouring stage has its result
  std::vector<double> room;   // for activations, by stage; empty: as much as they need
  bool ends_together = true;  // no stage ends its step before all have run their passes

  const ChunkTimes& of(std::int64_t stage, std::int64_t chunk) const {
    static constexpr ChunkTimes kAlike;
    if (chunks.empty()) return kAlike;
    return chunks[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  }
};

}  // namespace stepcast
