// SPDX-License-Identifier: Apache-2.0
// Among how many neighbours the method of context parallelism exchanges heads.
#pragma once

namespace stepcast {

struct Scenario;

// Fills in Layout::cp_exchange: all ranks, none, or as many as share a fast network, as far as
// there are heads to share out.
void settle_context(Scenario& scenario);

}  // namespace stepcast
