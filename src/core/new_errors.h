// SPDX-License-Identifier: Apache-2.0
// Errors of several attempts at one thing, each told once.
#pragma once

#include "core/error.h"

namespace stepcast {

// Adds those of `more` whose text no error of `errors` has yet.
void add_new(const Errors& more, Errors& errors);

}  // namespace stepcast
