// SPDX-License-Identifier: Apache-2.0
// Errors that the machine is to blame for, and not the user's input.
#pragma once

#include "core/error.h"

namespace stepcast {

// Whether only files are wrong, which the system does not let be read or written.
bool of_machine(const Errors& errors);

// Picks the errors that say that the machine refuses to read or write a file that is there.
// Whatever else was found says nothing about the input then.
Errors refused_by_machine(const Errors& errors);

}  // namespace stepcast
