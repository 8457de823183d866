// SPDX-License-Identifier: Apache-2.0
// Islands that train apart, and whose parameters meet after every so many steps (DiLoCo, arXiv
// 2311.08105; its streaming form, 2501.18512; docs/sites.md). The step inside an island is an
// ordinary forecast; this is what the meeting adds to it.
#pragma once

#include <cstdint>
#include <string>

#include "core/quantity.h"

namespace stepcast {

class RankGrid;
struct Pricing;
struct Program;
struct Scenario;

struct OuterStep {
  std::int64_t islands = 0;  // 0: there are no outer steps
  Seconds inner_step;        // without them
  Bytes sent;                // out of an island, for all parameters once
  Seconds message;           // of one fragment, until all islands have its sum
  Seconds update;            // of the outer optimizer, all fragments
  Seconds exposed;           // that the steps of one period are longer for it, without the update
  BytesPerSecond to_hide;    // out of an island: a link that carries this hides it; 0: none does
  std::string bound_by;      // the link that is full for most of a message; empty: none is
  double full = 0;           // for so much of it
};

OuterStep outer_step(const Scenario& scenario, const Program& program, const RankGrid& grid,
                     const Pricing& pricing, Seconds inner_step);

}  // namespace stepcast
