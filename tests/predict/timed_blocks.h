// SPDX-License-Identifier: Apache-2.0
// Prices for closed forms: each pass over one of a few blocks takes one second on the device, and
// nothing else takes any time, on the device or on the host.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/kernel_cost.h"
#include "layout/scenario.h"
#include "operation/operation.h"
#include "operation/signature.h"
#include "program/block.h"
#include "program/block_kind.h"
#include "program/program.h"
#include "program/walk.h"
#include "schedule/pass.h"

namespace stepcast::testing {

// The second is the time of an operation that occurs nowhere else in the program.
inline KernelCosts seconds_for(const Scenario& scenario, const Program& program,
                               const std::vector<BlockId>& blocks) {
  Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
  profile.host.fill(kNoHost);
  std::map<std::string, int> occurrences;
  for_each_operation(program, [&](const Operation& operation) {
    if (!runs_kernel(operation.work)) return;
    ++occurrences[signature(operation)];
    profile.exact[signature(operation)] = {Seconds(0), {}};
  });
  for (const BlockId id : blocks) {
    const Block& block = program.block(id);
    for (const Pass pass : passes_of(block.form)) {
      bool found = false;
      for (const Operation& operation : block.pass(pass).operations) {
        if (found || !runs_kernel(operation.work) || occurrences[signature(operation)] > 1)
          continue;
        profile.exact[signature(operation)] = {Seconds(1), {}};
        found = true;
      }
      EXPECT_TRUE(found) << "block " << id.value << " has no operation of its own";
    }
  }
  return {scenario.cluster.spec.accelerator, std::move(profile), KernelStyle::kOwn};
}

}  // namespace stepcast::testing
