// SPDX-License-Identifier: Apache-2.0
// The engine's clock: integer picoseconds in 64 bits (92 days). Seconds become picoseconds in one
// place, by rounding to nearest, so that runs are equal to the bit without any epsilon.
#pragma once

#include <compare>
#include <cstdint>

#include "core/quantity.h"

namespace stepcast::sim {

struct Duration {
  std::int64_t ps = 0;
  constexpr auto operator<=>(const Duration&) const = default;
};

struct Time {
  std::int64_t ps = 0;
  constexpr auto operator<=>(const Time&) const = default;
};

constexpr Time operator+(Time t, Duration d) { return {t.ps + d.ps}; }
constexpr Duration operator-(Time a, Time b) { return {a.ps - b.ps}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ps + b.ps}; }

Duration duration(Seconds seconds);  // rounds to nearest; see sim/clock_end.h
constexpr Seconds seconds(Duration d) { return Seconds(static_cast<double>(d.ps) * 1e-12); }
constexpr Seconds seconds(Time t) { return Seconds(static_cast<double>(t.ps) * 1e-12); }

}  // namespace stepcast::sim
