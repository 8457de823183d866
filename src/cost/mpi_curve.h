// SPDX-License-Identifier: Apache-2.0
// One measured size curve of communication between processes over MPI: our own rings over
// point-to-point messages (docs/collectives.md, "Processes over MPI"). Time is affine in the size
// between samples and beyond them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "cost/collective_model.h"
#include "cost/provenance.h"

namespace stepcast {

class ObjectReader;

constexpr double kMostStretch = 1000;

struct MpiCurve {
  struct Sample {
    double bytes;
    double seconds;
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<std::int64_t> placement;  // node of each member, in group order
  std::int64_t concurrent = 1;          // such groups at work at once while it was measured
  double cpu_share = 1;  // of one core, that each member takes from kernels while it is active
  double stretch = 0;  // its time beside kernels over its time alone; 0: as two equals share a core
  std::vector<Sample> samples;  // two or more, by size, all sizes different

  struct Point {
    Seconds time;
    Provenance provenance;
  };
  Point at(Bytes size) const;
  // The time of an empty message, by the line through the two smallest samples.
  Seconds latency() const;
  // The most payload per second that any message reaches in its fluid phase.
  BytesPerSecond fastest() const;
  // The rate of the largest message in its fluid phase: what links carry without end. Short
  // messages may pass faster, because buffers and token buckets take them.
  BytesPerSecond sustained() const;
};

// A curve of a profile (docs/formats/profile.md, "Collectives over MPI"), without "operation" and
// "transport".
// Errors go to the reader's document; the curve has no samples then.
MpiCurve read_mpi_curve(ObjectReader& reader);

}  // namespace stepcast
