// SPDX-License-Identifier: Apache-2.0
// The cost of a lost part of the cluster until it is back: the forecast of the whole cluster
// beside that of what is left.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "report/document_form.h"

namespace stepcast {

struct Prediction;
struct Scenario;

struct LossReport {
  std::string part;  // "node3"
  const Scenario& whole;
  const Prediction& before;
};

Written loss_table(const LossReport& loss, const Scenario& left, const Prediction& after,
                   Form form);
Json loss_object(const LossReport& loss, const Scenario& left, const Prediction& after);

}  // namespace stepcast
