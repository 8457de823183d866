// SPDX-License-Identifier: Apache-2.0
// What the operations of a block wait for across streams. It follows from the data: an operation
// waits for whoever wrote what it reads, and for whoever still uses what it overwrites. So a
// lowering only says which operations run beside the others.
#pragma once

#include "program/program.h"

namespace stepcast {

// Fills Operation::after in every pass of `block`.
void place_events(Block& block);

// By operation of a pass: until which operation its buffers are in use. Behind an operation on the
// computing stream nothing is; one beside it uses them until the first operation that waits for it,
// or to the end of the pass.
std::vector<std::int32_t> uses_end(const std::vector<Operation>& pass);

}  // namespace stepcast
