// SPDX-License-Identifier: Apache-2.0
// Kernels of context parallelism, where ranks share a sequence: tokens and heads in another order,
// and attention over some of the keys that joins that over others.
#pragma once

#include "kernels/arguments.h"

namespace stepcast::cpu {

// Moves or adds rows, as struct SpreadRowsArguments says.
void spread_rows(const SpreadRowsArguments& call);

// With a and b the log-sum-exps of what is there and of what comes, their sum is
// s = log(exp(a) + exp(b)), and the context exp(a - s) times the one plus exp(b - s) times the
// other (Dao 2023, section 2.3.1).
void merge_part(const MergedPartArguments& call);

}  // namespace stepcast::cpu
