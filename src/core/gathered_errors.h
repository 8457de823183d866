// SPDX-License-Identifier: Apache-2.0
// Errors of several attempts in one list, in the order in which they came up.
#pragma once

#include "core/error.h"

namespace stepcast {

void append(Errors& errors, const Errors& more);

// Adds those of `more` whose text no error of `errors` has yet.
void add_new(const Errors& more, Errors& errors);

}  // namespace stepcast
