// SPDX-License-Identifier: Apache-2.0
// Cuts passes at their collectives: a program that does the same, with the collectives as
// instructions and the operations between them as passes in part (RunPass::part). What an
// instruction is to a replay, they are now: they meet, load links and are waited for.
//
// Where a block runs operations beside each other, each of those beside the computing stream
// becomes an instruction, and what is computed ends and begins anew where one waits for the other.
// The block ends with an empty part that waits for all its streams.
#pragma once

#include "predict/shared_links.h"

namespace stepcast {

Program cut_passes(const Program& program, const Cuts& cuts);

}  // namespace stepcast
