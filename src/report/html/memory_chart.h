// SPDX-License-Identifier: Apache-2.0
// Allocated memory of one rank over a step, stacked by category.
#pragma once

#include <string>
#include <vector>

#include "core/quantity.h"
#include "report/html/markup.h"

namespace stepcast {
struct MemorySample;
}  // namespace stepcast

namespace stepcast::html {

struct MemoryChart {
  std::string title;
  std::int32_t stage = 0;
  Seconds length;                            // of the time axis
  ByteCount top = 0;                         // of the memory axis
  std::vector<const MemorySample*> samples;  // in order of time
};

// `charts` says how many stand side by side; the more there are, the coarser each is in time. Each
// column of the picture shows the fullest moment that falls into it, so peaks stay visible.
Html memory_chart(const MemoryChart& chart, std::size_t charts);

}  // namespace stepcast::html
