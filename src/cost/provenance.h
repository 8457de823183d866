// SPDX-License-Identifier: Apache-2.0
// Names the sources that a price may come from, and how sure each is.
#pragma once

#include <cstdint>

#include "core/quantity.h"

namespace stepcast {

enum class Provenance { kMeasured, kInterpolated, kExtrapolated, kDataSheet };
inline constexpr int kProvenances = 4;
constexpr const char* name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kInterpolated:
      return "interpolated";
    case Provenance::kExtrapolated:
      return "extrapolated";
    case Provenance::kDataSheet:
      return "data_sheet";
  }
  return "";
}

// The error that a price shares with others: all GEMMs priced from one surface are wrong together,
// and so are all kernels that were measured as they stand on one day.
enum class Curve { kGemm, kAttention, kMemoryBound, kHost, kCollective, kPointToPoint, kExact };
inline constexpr int kCurves = 7;

}  // namespace stepcast
