// SPDX-License-Identifier: Apache-2.0
// A forward of one micro-batch beside a backward of another, layer by layer, so that tokens of one
// travel to experts while the other computes (Megatron-LM, --overlap-moe-expert-parallel-comm:
// models/common/model_chunk_schedule_plan.py; docs/moe.md, "Beside another micro-batch").
#pragma once

#include <vector>

namespace stepcast {

struct Instruction;
struct Operation;
struct Role;
struct RunPass;

// It runs a pass beside another one (RunPass::beside).
bool alternates(const Instruction& what);
// It is the first of the two, the backward.
bool leads_pair(const Instruction& what);
// The other pass of the pair, over all blocks of its chunk of this role.
RunPass partner_of(const Role& role, const RunPass& run);

// The pass of this block exchanges tokens with the ranks of their experts.
bool has_exchanges(const std::vector<Operation>& pass);

// The operations of both passes over one layer each in the order of issue, with streams and events.
// Both must have exchanges. Each pass is cut at its two: what lies before the first, from the
// first to the last operation on the way to the experts, what experts compute, the way back, the
// rest.
//   computing:     B before, F before | B experts      | F experts | B rest      , F rest
//   communicating: B to the experts   | F to the experts, B back   | F back
// If `delays_wgrad`, the way of B back waits for the input gradients of its experts alone, and runs
// beside their weight gradients (Megatron-LM, --delay-wgrad-compute: mlp.backward_dw).
std::vector<Operation> issue_in_turn(const std::vector<Operation>& forward,
                                     const std::vector<Operation>& backward,
                                     bool delays_wgrad = false);

}  // namespace stepcast
