// SPDX-License-Identifier: Apache-2.0
// The properties that some scenario still violates. Tests do not ask them; a hunt does.
#pragma once

#include <array>
#include <string_view>

namespace stepcast::generate {

inline constexpr std::array<std::string_view, 17> kNotHeldYet = {
    // Cables that are thin or missing, and times beyond the clock.
    "has_a_forecast",
    "time_adds_up",
    "waterfall_is_not_negative",
    "nothing_else_is_negative",
    "memory_is_not_negative",
    "memory_returns_to_the_states",
    // Clusters that stand in no list.
    "resolved_forecasts_the_same",
    "faster_arithmetic",
    "faster_memory",
    "faster_scale_up",
    "faster_scale_up_latency",
    "faster_pcie",
    "faster_nic",
    "faster_network_latency",
    "wider_trunks",
    "more_memory",
    "plan_is_not_behind",
};

}  // namespace stepcast::generate
