// SPDX-License-Identifier: Apache-2.0
// The communication that a program needs between its ranks on processors, as the program issues it:
// all groups of a kind at once, on the stream that carries it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/measure/busy_core.h"
#include "calibrate/measure/collective_backend.h"
#include "calibrate/measure/rank_context.h"
#include "calibrate/protocol/needed_shapes.h"
#include "core/json_fwd.h"
#include "core/seeded_random.h"
#include "execute/groups.h"
#include "execute/stream_engine.h"

namespace stepcast {

struct Program;
struct Scenario;

// One curve: a kind of communication of one kind of group.
// In one direction; the other counts as the same.
struct StagePair {
  std::int32_t from, to;
  auto operator<=>(const StagePair&) const = default;
};
struct CommunicationCurve {
  CollectiveKind collective = CollectiveKind::kAllReduce;
  AxisGroup group = AxisGroup::kData;
  bool on_compute_stream = false;
  std::optional<StagePair> stages;  // of a send
  std::vector<ByteCount> sizes;     // ascending
};

class HostCollectives final : public CollectiveBackend {
 public:
  HostCollectives(const RankContext& rank, const Scenario& scenario, const Program& program,
                  const NeededMeasurements& needed);

  std::vector<Curve> curves() const override;
  Meeting meet(std::size_t curve) override;
  std::string key_of(ByteCount bytes) const override;
  void begin_size(ByteCount bytes) override;
  Sample sample(ByteCount bytes) override;
  // "cpu_share": of a core, that the process burns while it moves a transfer.
  SortedJson facts_of_size() const override;
  bool has_sharing() const override { return !curve_->on_compute_stream; }
  double longest_sharing_s() const override;
  // "cpu_share": of a core, that the kernels of a member lose while it moves; "stretch": its time
  // beside kernels over its time alone.
  SortedJson sharing(ByteCount bytes, double alone_s) override;
  bool on_any_rank(bool here) override { return stepcast::on_any_rank(rank_, here); }

 private:
  struct Moved {
    double seconds = 0;
    double lost_s = 0;  // of a core, by the kernels beside it
  };
  // `beside`: kernels that go on meanwhile.
  Moved move(std::size_t count, BusyCore* beside = nullptr);
  bool on_any_rank_beside(BusyCore& core, bool here);
  std::unique_ptr<Request> start(std::size_t count);

  const RankContext& rank_;
  const Scenario& scenario_;
  RankGrid grid_;
  SeededRandom random_;  // arrivals
  std::vector<CommunicationCurve> curves_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<float> data_;
  std::vector<float> received_;    // by an all-to-all, which is not in place
  StreamEngine engine_;            // before the data that its transfers fill
  double cpu_s_ = 0, wall_s_ = 0;  // of the samples of one size
  int next_tag_ = 1000;

  // The present meeting:
  const CommunicationCurve* curve_ = nullptr;
  Communicator* members_ = nullptr;  // null: this rank takes no part
  Meeting meeting_;
  bool sends_ = false;
};

}  // namespace stepcast
