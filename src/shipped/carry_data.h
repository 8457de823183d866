// SPDX-License-Identifier: Apache-2.0
// The data that ships, inside the program: models, topologies, profiles, prices and suites as they
// stood in the tree when it was built (cmake/pack_data.cpp).
#pragma once

namespace stepcast {

// Makes the data readable below kCarriedRoot (core/carried_files.h). Programs call it as they
// start.
void carry_shipped_data();

}  // namespace stepcast
