// SPDX-License-Identifier: Apache-2.0
// Names the causes of the differences that a diagnosis holds.
#pragma once

#include "diagnose/step_diagnosis.h"

namespace stepcast {

// The split of both steps says more than kernels and messages.
struct ComparedIdle {
  StepParts forecast, measured;
};

// Fills in the gaps, the first cause first.
void find_gaps(const ComparedIdle& idle, Diagnosis& diagnosis);

}  // namespace stepcast
