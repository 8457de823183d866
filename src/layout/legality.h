// SPDX-License-Identifier: Apache-2.0
// The two questions about a resolved scenario: do its values contradict each other (kIllegal, with
// the nearest legal values), and is all of it modelled (kNotSupported)?
#pragma once

#include <string>

#include "layout/findings.h"

namespace stepcast {

struct Model;
struct Scenario;
struct Stated;

// `stated` tells what the file says from what a default says.
void check_legality(const Scenario& scenario, const Stated& stated, Findings& findings);

// Checks recomputation, passes that run beside each other, and graphs of launches.
void check_passes(const Scenario& scenario, Findings& findings);
// Number types that do not go together, and products in fp8 and fp4.
void check_precision(const Scenario& scenario, const Stated& stated, Findings& findings);
// Documents packed into sequences.
void check_documents(const Scenario& scenario, const Stated& stated, Findings& findings);
// States in host memory and on disks; and optimizers, Muon and those of small states among them.
void check_offload(const Scenario& scenario, Findings& findings);
void check_optimizer(const Scenario& scenario, const Stated& stated, Findings& findings);

// Islands that train apart, and their outer steps.
void check_outer_steps(const Scenario& scenario, const Stated& stated, Findings& findings);

void check_support(const Scenario& scenario, Findings& findings);

// Why no scenario of this model is supported, "mixture of experts (8 experts)"; empty: some are.
std::string unsupported_in(const Model& model);

}  // namespace stepcast
