// SPDX-License-Identifier: Apache-2.0
// Forecasts device memory when this project's executor runs it on GPUs: tensors come from one pool
// of CUDA's, without a caching allocator's gaps, and libraries have their workspace.
#pragma once

#include "program/executor_workspace.h"

namespace stepcast {

struct Prediction;
struct Scenario;

void count_executor_memory(const Scenario& scenario, AttentionBy attention, Prediction& forecast);

}  // namespace stepcast
