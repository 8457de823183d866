// SPDX-License-Identifier: Apache-2.0
// Cuts passes at their collectives: a program that does the same, with the collectives as
// instructions on the computing stream and the operations between them as passes in part
// (RunPass::part). What an instruction is to a replay, they are now: they meet, load links and are
// waited for.
#pragma once

#include "predict/shared_links.h"

namespace stepcast {

// A pass whose operations use streams of their own inside the block is left whole.
Program cut_passes(const Program& program, const Cuts& cuts);

}  // namespace stepcast
