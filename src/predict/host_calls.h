// SPDX-License-Identifier: Apache-2.0
// The host does this for one lowered operation beyond launching it: a layer of experts is many
// kernels, copies and small tensors, of which the lowering keeps what takes time on the device.
#pragma once

#include "core/quantity.h"
#include "cost/profile.h"

namespace stepcast {

struct Operation;
struct Scenario;

struct HostCalls {
  std::int64_t operators = 0;  // called from Python
  std::int64_t calls = 0;      // made by a module's own code

  Seconds time(const HostFit& host) const {
    return Seconds(host.operator_s * static_cast<double>(operators) +
                   host.call_s * static_cast<double>(calls));
  }
};

// Counts what comes beyond the operation's own launch (FrameworkRules::expert_host).
HostCalls calls_beside(const Operation& operation, const Scenario& scenario);

}  // namespace stepcast
