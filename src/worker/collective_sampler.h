// SPDX-License-Identifier: Apache-2.0
// Measures the communication that a program needs between its ranks, as the program issues it: all
// groups of a kind at once, on the stream that carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calibrate/journal.h"
#include "calibrate/needed_shapes.h"
#include "calibrate/protocol.h"
#include "core/seeded_random.h"
#include "execute/groups.h"
#include "execute/stream_engine.h"
#include "layout/scenario.h"
#include "worker/busy_core.h"
#include "worker/rank_context.h"

namespace stepcast {

// One curve: a kind of communication of one kind of group.
struct CommunicationCurve {
  std::string collective;  // "all_reduce", ..., "send_recv"
  GroupKind group = GroupKind::kData;
  bool on_compute_stream = false;
  std::int32_t boundary = -1;    // of send_recv: from this stage to the next
  std::vector<ByteCount> sizes;  // ascending
};

// What `program` needs and sends, with sizes between for interpolation.
std::vector<CommunicationCurve> communication_curves(const Program& program,
                                                     const NeededMeasurements& needed);

class CollectiveSampler {
 public:
  CollectiveSampler(const RankContext& rank, const Scenario& scenario, const Program& program,
                    const NeededMeasurements& needed, Journal& journal);

  // Objects as profiles hold them, of the curves whose first member this rank is; appended to
  // `out`. Called by all ranks.
  void measure(nlohmann::ordered_json& out);

 private:
  struct Meeting {
    Communicator* members = nullptr;  // null: this rank takes no part
    bool sends = false;
    int peer = -1;
    std::vector<std::int64_t> placement;
    std::int64_t concurrent = 1;
    bool is_first = false;
  };
  // What a transfer and the kernels beside it take from each other.
  struct Sharing {
    // Of a core, that the kernels of a member lose while it moves; of a transfer on the compute
    // stream, that its process burns.
    double cpu_share = 0;
    double stretch = 0;  // its time beside kernels over its time alone; 0: never beside kernels
  };
  Meeting meet(const CommunicationCurve& curve);
  Sharing measure_curve(const CommunicationCurve& curve, const Meeting& meeting,
                        nlohmann::ordered_json& points);
  // From the journal where every rank has it there.
  Measurement measure_size(const CommunicationCurve& curve, const Meeting& meeting, ByteCount bytes,
                           double& cpu_share);
  Measurement take_samples(const CommunicationCurve& curve, const Meeting& meeting, ByteCount bytes,
                           double& cpu_share);
  Sharing measure_sharing(const CommunicationCurve& curve, const Meeting& meeting, ByteCount bytes,
                          double alone_s);
  Sharing sample_sharing(const CommunicationCurve& curve, const Meeting& meeting, ByteCount bytes,
                         double alone_s);
  bool on_any_rank_beside(BusyCore& core, bool here);
  struct Moved {
    double seconds = 0;
    double lost_s = 0;  // of a core, by the kernels beside it
  };
  // `beside`: kernels that go on meanwhile.
  Moved sample(const CommunicationCurve& curve, const Meeting& meeting, std::size_t count,
               BusyCore* beside = nullptr);
  std::string name_of_point(const CommunicationCurve& curve, const Meeting& meeting,
                            ByteCount bytes) const;
  std::unique_ptr<Request> start(const CommunicationCurve& curve, const Meeting& meeting,
                                 std::size_t count);

  const RankContext& rank_;
  const Scenario& scenario_;
  RankGrid grid_;
  Journal& journal_;
  SeededRandom random_;  // arrivals
  std::vector<CommunicationCurve> curves_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<float> data_;
  StreamEngine engine_;            // before the data that its transfers fill
  double cpu_s_ = 0, wall_s_ = 0;  // of the samples of one size
  int next_tag_ = 1000;
  std::int64_t done_ = 0, all_ = 0;  // sizes
};

}  // namespace stepcast
