// SPDX-License-Identifier: Apache-2.0
// Says what a search may try for each key of `layout` that it may vary.
#pragma once

#include "layout/keys.h"

namespace stepcast {

extern const KeySearch kSearchCp, kSearchCpMethod, kSearchShardGroup, kSearchTp, kSearchPp,
    kSearchMicroBatch, kSearchEp, kSearchEtp, kSearchSchedule, kSearchVirtualStages,
    kSearchRecompute, kSearchSequenceParallel, kSearchZero, kSearchOrder, kSearchOverlapGradReduce,
    kSearchOverlapParamGather, kSearchOverlapTp, kSearchOverlapPp;

}  // namespace stepcast
