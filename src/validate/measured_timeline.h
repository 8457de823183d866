// SPDX-License-Identifier: Apache-2.0
// Splits the steps of a real run by what they were spent on, rank by rank: the definitions of
// predict/timeline.h on the spans that the ranks measured.
//
// One thing the spans of a rank alone do not say: when a transfer that it waits for was in flight.
// A receive stands posted long before its sender comes to the send; the clock is the machine's, so
// the last to arrive is looked up among the others' spans.
#pragma once

#include <memory>
#include <vector>

#include "predict/time_parts.h"
#include "validate/rank_file.h"

namespace stepcast {

struct Program;

struct MeasuredTimeline {
  double step_end = 0;  // of the last work on the compute stream
  TimeParts parts;      // of the time since the end of the step before; adds up to it. Passes
                        // are compute as a whole
  double span_begin = 0, span_end = 0;  // first forward start to last backward end
  double busy = 0;                      // passes inside the span
  double exposed_in_span = 0;           // waits for traffic of the stage between passes
  double span() const { return span_end - span_begin; }
};

class MeasuredTimelines {
 public:
  // All outlive this; `files` are those of all ranks, or that of one which ran alone: then no gap
  // is a wait for others.
  MeasuredTimelines(const Program& program, const RankGrid& grid,
                    const std::vector<RankFile>& files);
  ~MeasuredTimelines();

  // `file` is an index into `files`. In step 0 the time before its first work is not attributed,
  // because the step before was not measured.
  MeasuredTimeline read(std::size_t file, std::size_t step) const;

 private:
  class Meetings;

  const Program& program_;
  const RankGrid& grid_;
  const std::vector<RankFile>& files_;
  std::unique_ptr<Meetings> meetings_;
};

}  // namespace stepcast
