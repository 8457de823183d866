// SPDX-License-Identifier: Apache-2.0
// Lists the prices of one rank's operations: a forecast is made of them, each alone, before they
// meet on cores, links and streams.
#pragma once

#include <string>
#include <vector>

#include "core/id.h"
#include "core/quantity.h"
#include "core/result.h"
#include "cost/provenance.h"
#include "operation/phase.h"
#include "operation/signature.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

// All calls of operations of one signature, name and phase in a step.
struct OperationPrice {
  std::string signature;
  std::string name;
  Phase phase = Phase::kForward;
  double calls_per_step = 0;
  Seconds total;  // of all calls
  Provenance provenance = Provenance::kDataSheet;
  bool is_collective() const { return is_signature_of_collective(signature); }
};

// `own_kernels` as in PredictOptions. In the order in which the rank first runs them; operations
// that take no time (a buffer under another name) are left out.
Result<std::vector<OperationPrice>> operation_table(const Scenario& scenario,
                                                    const DataFolders& folders, RankId rank,
                                                    bool own_kernels = false);

}  // namespace stepcast
