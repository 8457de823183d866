// SPDX-License-Identifier: Apache-2.0
// Whether the instructions of a role hand on what crosses its blocks: each activation and each
// gradient is there when a pass or a transfer takes it, and is taken once; passes over a chunk come
// in their order; saved activations that wait in host memory are back before their backward; whole
// gradients and gathered parameters are freed where they were held, and once. With the lives of
// buffers inside blocks (program/check_lives.h) this is all of a step's memory.
#pragma once

#include <optional>
#include <string>

namespace stepcast {

struct Program;
struct Role;

// The first fault, with stage, instruction and what it misses: "stage 1: send of forward,
// micro-batch 3, chunk 0: nobody holds the activation". Nothing where all is sound.
std::optional<std::string> fault_of(const Program& program, const Role& role);

}  // namespace stepcast
