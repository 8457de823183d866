// SPDX-License-Identifier: Apache-2.0
// A step may be longer with more of a resource for two reasons.
//
// Something chooses by it, in steps and by a model of its own: NCCL its algorithms, protocols and
// channels, without the measured curves and what its channels take from kernels; a schedule that is
// fitted to the times of passes its order. That is the reason where the choices differ, and the
// step is no longer with those of before.
//
// Transfers meet others on their links than before. Where each begins when it can and all share
// their links fairly, one that ends earlier lets the next begin beside another that the step waits
// for (Graham, Bounds on multiprocessing timing anomalies, 1969). That is the reason where the step
// is no longer once nobody shares a link and the choices are those of before.
#pragma once

#include <string>

#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/timed_orders.h"
#include "predict/traffic_choices.h"

namespace stepcast::testing {

struct KeptChoices {
  bool differ = false;  // those on the changed cluster from those before
  Seconds step_time;    // on the changed cluster, with those of before
  // The changed step by that of before, both with those choices and as if no transfer met another
  // on a link.
  double apart = 1;
};

// `changed` is `before` on another cluster.
inline Result<KeptChoices> keep_choices(const Scenario& before, const Scenario& changed,
                                        const DataFolders& folders) {
  const auto own = make_pricing(before, folders);
  if (!own) return failure(own.error());
  const auto other = make_pricing(changed, folders);
  if (!other) return failure(other.error());
  const auto kept = make_pricing(changed, folders, false, &before.cluster.spec);
  if (!kept) return failure(kept.error());
  Scenario own_order = before, other_order = changed, same_order = changed;
  keep_timed_orders(**own, own_order);
  keep_timed_orders(**other, other_order);
  same_order.layout.schedule_text = own_order.layout.schedule_text;
  const auto after = predict(same_order, **kept);
  if (!after) return failure(after.error());
  const PredictOptions apart{.contention = false};
  const auto before_apart = predict(own_order, **own, apart);
  if (!before_apart) return failure(before_apart.error());
  const auto after_apart = predict(same_order, **kept, apart);
  if (!after_apart) return failure(after_apart.error());
  const auto order = [](const Scenario& s) {
    return s.layout.schedule_text ? *s.layout.schedule_text : std::string();
  };
  const bool differ = traffic_choices(before, **own) != traffic_choices(changed, **other) ||
                      order(own_order) != order(other_order);
  return KeptChoices{differ, after->step_time, after_apart->step_time / before_apart->step_time};
}

}  // namespace stepcast::testing
