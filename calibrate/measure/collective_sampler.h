// SPDX-License-Identifier: Apache-2.0
// Measures communication between ranks: sizes, repetition and rejection by the protocol, agreement
// of the ranks on when to stop, a journal of what is finished. Who moves the data is a
// CollectiveBackend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/measure/collective_backend.h"
#include "calibrate/measure/job_failure.h"
#include "calibrate/protocol/journal.h"
#include "calibrate/protocol/protocol.h"
#include "core/json_tree.h"

namespace stepcast {

struct CollectiveBudget {
  double of_all_s = 0;            // points are left out once so long has gone; 0: none are
  std::function<double()> now_s;  // the clock of that
};

class CollectiveSampler {
 public:
  CollectiveSampler(const Job& job, RankReporter& report, Journal& journal,
                    CollectiveBackend& backend, CollectiveBudget budget = {});

  // Objects as ranks write them, of the curves whose first member this rank is; appended to `out`.
  // Called by all ranks.
  void measure(Json& out);

  std::int64_t left_out() const { return left_out_; }  // points, for the budget

 private:
  using Meeting = CollectiveBackend::Meeting;
  struct Point {
    Measurement measurement;
    SortedJson facts;
  };
  Point measure_size(const Meeting& meeting, ByteCount bytes);
  Measurement take_samples(const Meeting& meeting, ByteCount bytes);
  SortedJson measure_curve(const CollectiveBackend::Curve& curve, const Meeting& meeting,
                           Json& points);
  SortedJson measure_sharing(ByteCount bytes, double alone_s);
  bool is_over();

  const Job& job_;
  RankReporter& report_;
  Journal& journal_;
  CollectiveBackend& backend_;
  CollectiveBudget budget_;
  double begin_s_ = 0;
  std::int64_t done_ = 0, all_ = 0, left_out_ = 0;  // points
};

}  // namespace stepcast
