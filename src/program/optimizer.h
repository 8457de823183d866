// SPDX-License-Identifier: Apache-2.0
// The end of a step as blocks: zeroing gradients, their norm, clipping, AdamW, Muon.
#pragma once

#include <vector>

#include "program/muon.h"

namespace stepcast {

struct HostUpdate;
struct Role;
struct Scenario;

// They cover the parameters of `role`, as far as this rank holds or updates them; `shares` are
// those of matrices that Muon updates.
Block lower_zero_gradients(const Scenario& scenario, const Role& role);
Block lower_gradient_norm(const Scenario& scenario, const Role& role,
                          const std::vector<MuonShare>& shares = {});
Block lower_update(const Scenario& scenario, const Role& role,
                   const std::vector<MuonShare>& shares = {});

// The host updates these of the role's parameters (layout.offload.optimizer): how many elements,
// and what it moves for them.
std::int64_t host_elements(const Scenario& scenario, const Role& role);
HostUpdate host_update(const Scenario& scenario, const Role& role);
// Behind it on the device: rounds weights that came back in fp32, where the framework keeps them.
Block lower_returned(const Scenario& scenario, const Role& role);

// Gradients of `elements` parameters cast to the precision that reduces them.
Block lower_gradient_cast(const Scenario& scenario, std::int64_t elements);

}  // namespace stepcast
