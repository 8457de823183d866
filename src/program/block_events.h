// SPDX-License-Identifier: Apache-2.0
// The operations of a block wait for each other across streams. This follows from the data: an
// operation waits for whoever wrote what it reads, and for whoever still uses what it overwrites.
// So a lowering only says which operations run beside the others. A collective beside the kernels
// also waits for those issued before it: a communicator begins where its caller's stream stands
// (PyTorch, ProcessGroupNCCL.cpp: syncStream).
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct Block;
struct Operation;

// Fills Operation::after in every pass of `block`.
void place_events(Block& block);

// Some operation of the pass has another stream than the computing one.
bool runs_beside(const std::vector<Operation>& pass);

// By operation of a pass: until which operation its buffers are in use. Behind an operation on the
// computing stream nothing is. One beside it uses them until the computing stream comes to an
// operation before which it has ended for certain, or to the end of the pass: memory is freed in
// the order of what is computed.
std::vector<std::int32_t> uses_end(const std::vector<Operation>& pass);

}  // namespace stepcast
