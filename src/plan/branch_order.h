// SPDX-License-Identifier: Apache-2.0
// The order in which a search looks at the branches of its space. It changes no answer of a search
// that looks at all of them; one that has little time is to see the likely ones first.
#pragma once

#include <cstddef>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

class Space;
struct LayoutChoice;
struct Scenario;

// Indices of `branches`: first those whose stages hold their weights, by how far they spread the
// model and how much they compute at once; then the others, by what they need. `scenario` is
// scratch.
std::vector<std::size_t> by_promise(const std::vector<LayoutChoice>& branches, const Space& space,
                                    ByteCount memory_limit, Scenario& scenario);

}  // namespace stepcast
