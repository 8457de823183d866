// SPDX-License-Identifier: Apache-2.0
// A measured step as slices, for pictures beside those of its forecast.
#pragma once

#include <vector>

#include "validate/rank_file.h"

namespace stepcast {

struct Program;
struct TraceSlice;

// The passes and collectives of the step whose length is the median. They are those of the lowest
// rank of each stage, or of the only rank that ran, with its stage as rank class. Times are
// relative to the first of them to begin its step. Receives are left out: they stand posted long
// before they move data.
std::vector<TraceSlice> measured_slices(const Program& program, const RankGrid& grid,
                                        const std::vector<RankFile>& files);

}  // namespace stepcast
