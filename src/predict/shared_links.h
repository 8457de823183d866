// SPDX-License-Identifier: Apache-2.0
// Which passes are stamped into the step as tasks (predict/pass_tasks.h). A pass is one macro
// activity as long as what it sends meets nobody else's traffic. Where its collectives use links
// that other streams of the step use at the same time (a tensor-parallel group across nodes, beside
// the reduction of gradients through the same NICs), they must be activities with loads on links.
//
// Everything is read off routed loads, prices and the order of instructions.
#pragma once

#include <vector>

#include "predict/traffic.h"
#include "program/waits.h"

namespace stepcast {

struct Pricing;
struct Program;
struct Role;
struct Scenario;

// `foreign`: bytes/s that other jobs may send at any time, by LinkId; empty: there are none.
Stamps find_stamps(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Traffic& traffic, const Pricing& pricing,
                   const std::vector<double>& foreign = {});

// Compute-stream instructions that may run while a transfer is under way: strictly between the last
// that has ended before it starts (-1: none) and the first that starts after its end.
struct TransferWindow {
  InstructionIndex after, before;
};
// Returns a window for each instruction of the role.
std::vector<TransferWindow> transfer_windows(const Role& role);

}  // namespace stepcast
