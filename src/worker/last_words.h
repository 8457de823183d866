// SPDX-License-Identifier: Apache-2.0
// A rank says this when memory ends where no exception may leave (core/out_of_memory.h).
#pragma once

#include "core/out_of_memory.h"
#include "launch/rank_report.h"

namespace stepcast {

inline constexpr const char* kNoMemory = "no memory left for another buffer";

// `report` must outlive the process's work.
inline void tell_when_memory_ends(RankReporter& report) {
  static RankReporter* teller = nullptr;
  teller = &report;
  end_without_memory([] { teller->failed(RankFailure::kOutOfMemory, kNoMemory); }, 1);
}

}  // namespace stepcast
