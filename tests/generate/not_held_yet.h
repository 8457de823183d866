// SPDX-License-Identifier: Apache-2.0
// The properties that some scenarios still violate, with how many of the first 20,000 of seed 1.
// Tests do not ask them; a hunt does.
#pragma once

#include <array>
#include <string_view>

namespace stepcast::generate {

// 13 of the 25 violations come from how a pass pays for links that it shares with the traffic
// beside it (predict/shared_links.cpp). 5 of them are its threshold kWorthCutting: they go whether
// all passes are cut or none is. 8 go only where none is. The other 12 remain in both cases, and
// their cause is not known yet: steps are 0.15 to 2.5 % longer.
//
// folded_is_unfolded is asked all the same, because it holds for what the tests draw: 6 of 8,925
// violate it, by up to 0.5 % of a step or 0.15 of bubble.
inline constexpr std::array<std::string_view, 7> kNotHeldYet = {
    "faster_arithmetic",        // 5 of 5,737, by up to 2.9 %
    "faster_memory",            // 4 of 5,737, by up to 0.4 %
    "faster_scale_up",          // 4 of 5,518, by up to 12.2 %
    "faster_scale_up_latency",  // 3 of 5,546, by up to 0.6 %
    "faster_pcie",              // 2 of 5,754, by up to 5.6 %
    "faster_nic",               // 5 of 3,703, by up to 4.8 %
    "faster_network_latency",   // 2 of 3,703, by up to 1.0 %
};

}  // namespace stepcast::generate
