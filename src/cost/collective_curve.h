// SPDX-License-Identifier: Apache-2.0
// Measured times of collectives by message size, and how they carry over to other groups
// (docs/collectives.md, "Price"). A curve is kept as what the measurement adds to the nominal price
// of its own group in each step of the algorithm, by the bytes of a step; a group of another size
// takes the addition at the bytes of its own steps, as often as it has steps. The curve's last
// sample gives the fraction of the graph's bandwidth that is reached.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/json_fwd.h"
#include "core/result.h"
#include "cost/collective_model.h"
#include "cost/link_load.h"
#include "cost/provenance.h"
#include "operation/collective_kind.h"

namespace stepcast {

class ObjectReader;

struct CollectiveSample {
  Bytes size;
  Seconds time;  // of the kernel, without the host's launch
};

// The machine and the group that were measured.
struct MeasuredGroup {
  std::string id;
  ClusterSpec cluster;
  GroupShape group;
  CollectiveKind kind = CollectiveKind::kAllReduce;
};

struct CurvePrice {
  NcclEstimate choice;       // algorithm, protocol, channels, nominal latency
  BytesPerSecond asymptote;  // payload per second that endless messages reach
  Seconds time;
  Provenance provenance = Provenance::kDataSheet;
  std::int32_t curve = -1;  // into CollectiveCurves::curves(); -1: none, the nominal model
};

class CollectiveCurve {
 public:
  CollectiveCurve(MeasuredGroup measured, std::vector<CollectiveSample> samples);

  const MeasuredGroup& measured() const { return measured_; }
  Algorithm asymptotic() const { return asymptotic_; }
  double efficiency() const { return efficiency_; }  // of the graph's bandwidth, endless messages

  // The measurement adds this to the nominal price, in each step of `algorithm`: by its samples of
  // that algorithm, whose steps are alike, or by all where it has none.
  Seconds addition(Algorithm algorithm, Bytes step) const;
  bool holds(Bytes size) const;  // inside the measured range of messages
  bool has_sample(Bytes size) const;
  // This curve as if the message of this size had not been measured; nothing where it was all.
  std::optional<CollectiveCurve> without(Bytes size) const;

 private:
  struct Point {
    double log_step;
    Seconds addition;
    Algorithm algorithm;
  };
  // A forecast asks few of the curves that it reads, so each makes its points when it is asked.
  struct Points {
    std::once_flag made;
    std::vector<Point> by_step;
    std::vector<Point> by_algorithm;  // all points by algorithm, then by step
  };
  static Seconds between(std::span<const Point> points, double log_step);
  std::span<const Point> points_of(Algorithm algorithm) const;
  void make_points() const;

  MeasuredGroup measured_;
  Algorithm asymptotic_ = Algorithm::kRing;
  double efficiency_ = 1;
  std::vector<CollectiveSample> samples_;
  std::shared_ptr<Points> points_ = std::make_shared<Points>();  // copies share them
};

class CollectiveCurves {
 public:
  CollectiveCurves() = default;  // none: everything comes from the data sheet
  explicit CollectiveCurves(std::vector<CollectiveCurve> curves) : curves_(std::move(curves)) {}
  static Result<CollectiveCurves> load(const std::string& file);

  // If two curves are equally near, the one that was there first is taken.
  void add(const std::vector<CollectiveCurve>& curves);

  CurvePrice price(const ClusterSpec& cluster, const CollectiveModel& model, CollectiveKind kind,
                   Bytes size, DataType type) const;
  Reached reached(const ClusterSpec& cluster, const CollectiveModel& model,
                  CollectiveKind kind) const;

  const std::vector<CollectiveCurve>& curves() const { return curves_; }

 private:
  static Result<CollectiveCurves> read(const std::string& file);

  // Messages without end: the nominal choice, the curve that serves the group, and what is reached.
  struct Endless {
    NcclEstimate choice;
    const CollectiveCurve* curve = nullptr;
    Reached reached;
  };
  Endless endless(const ClusterSpec& cluster, const CollectiveModel& model,
                  CollectiveKind kind) const;
  const CollectiveCurve* nearest(const ClusterSpec& cluster, const CollectiveModel& model,
                                 CollectiveKind kind, Algorithm asymptotic) const;

  std::vector<CollectiveCurve> curves_;
};

// The keys of a measured group in published tables and in profiles; `id` among them.
MeasuredGroup read_measured_group(ObjectReader& reader);
// [bytes, time]; `unit` is that of the times.
std::vector<CollectiveSample> read_collective_samples(const JsonValue& rows, Seconds unit);
// Writes the keys of `measured`, from which read_measured_group() makes an equal one.
Json to_json(const MeasuredGroup& measured);

}  // namespace stepcast
