// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer.h"

#include "layout/scenario.h"
#include "plan/space.h"

namespace stepcast {

std::int64_t Offer::gpus() const {
  return planner ? planner->space().base().cluster.gpus() : request.gpus;
}

}  // namespace stepcast
