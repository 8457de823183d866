// SPDX-License-Identifier: Apache-2.0
// The order in which a stage runs forward and backward passes: data, not time. Waiting, transfers
// and bubbles come out of the replay. A schedule is one file with its row (gpipe.cpp is the
// shortest) and its name in the list of schedules.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "schedule/pass.h"
#include "schedule/pass_times.h"
#include "schedule/schedule_kind.h"

namespace stepcast {

// Two passes that may run beside each other (`layout.overlap.ep`): a backward and the forward
// behind it in the order, or a forward and the backward behind it.
enum class Pairs { kNone, kBackwardForward, kForwardBackward };

// The pipeline that an order is made for, in plain numbers.
struct Pipeline {
  std::int64_t stages = 1;
  std::int64_t chunks = 1;  // of each stage
  std::int64_t micro_batches = 1;
  Placement placement = Placement::kStraight;
  // Micro-batches that visit a chunk of an interleaved stage before the next chunk has its turn;
  // the last group may be shorter. 0: as many as there are stages.
  std::int64_t group = 0;

  // They make the model.
  std::int64_t all_chunks() const {
    return placement == Placement::kMirrored ? stages : stages * chunks;
  }
  std::int64_t group_size() const { return group > 0 ? group : stages; }
};

// The stage on which a micro-batch meets a chunk of the model.
std::int64_t stage_of_chunk(const Pipeline& pipeline, std::int64_t chunk, std::int64_t micro_batch);
// The two stages that hold a mirrored chunk number their chunks alike: first the earlier in model
// order.
std::int64_t chunk_of(const Pipeline& pipeline, std::int64_t stage, std::int64_t local_chunk);
std::int64_t local_chunk_of(const Pipeline& pipeline, std::int64_t chunk);

// The micro-batches that pass a chunk of a stage: all of them, or the half of a direction.
struct MicroBatches {
  std::int64_t begin = 0, end = 0;
};
MicroBatches micro_batches_of(const Pipeline& pipeline, std::int64_t stage,
                              std::int64_t local_chunk);

// Whether the pass hands on towards the first stage what others hand on towards the last.
bool goes_up(const Pipeline& pipeline, const Slot& slot);

// One schedule: how it orders passes, and the rules that go with it. Everyone else asks the rules.
struct Schedule {
  static constexpr std::int64_t kSeveral = 0;  // two chunks or more
  static constexpr std::int64_t kOneOrTwo = -1;
  static constexpr int kNotSearched = -1;

  const char* name;  // in scenario files
  // The order of one stage, or of all of them where it depends on how long their passes take. Both
  // are null where a file holds it.
  StageOrder (*order)(const Pipeline& pipeline, std::int64_t stage) = nullptr;
  std::vector<StageOrder> (*orders)(const Pipeline& pipeline, const PassTimes& times) = nullptr;
  bool from_file = false;
  Placement placement = Placement::kStraight;
  std::int64_t chunks = 1;    // of each stage, on two stages or more where several
  bool whole_groups = false;  // micro-batches come in groups, of Pipeline::group_size()
  Pairs pairs = Pairs::kNone;
  std::int64_t least_rounds = 0;      // at least so many micro-batches for each stage
  bool splits_backward = false;       // into the input's and the weights' gradient
  bool validates_after_step = false;  // clips gradients without waiting for their norm
  bool takes_the_shortest = false;    // of all that run on such a pipeline (other_orders.h)
  int search_place = kNotSearched;    // when `plan` tries it: 0 first
  // Equal stages without communication: p stages, m micro-batches, v chunks per stage.
  const char* bubble = "";
  const char* in_flight = "";  // micro-batches that stage 0 holds
  const char* source = "";

  bool is_made() const { return order != nullptr || orders != nullptr; }
};

std::span<const Schedule* const> schedules();
std::vector<std::string> made_schedules();  // the names of those with an order
const Schedule& rules_of(ScheduleKind kind);

// One order per stage, of a schedule that has them. `times`: of a schedule that asks for them;
// where there are none, all passes take the same.
std::vector<StageOrder> make_orders(ScheduleKind kind, const Pipeline& pipeline,
                                    const PassTimes& times = {});

// A cell of PyTorch's pipeline CSV: model chunk, letter, micro-batch, as in 0F3.
std::string cell_text(const Pipeline& pipeline, std::int64_t stage, const Slot& slot);
// The whole file: one row per stage, cells in order of execution.
std::string to_csv(const Pipeline& pipeline, const std::vector<StageOrder>& orders);
// A model that comes back up has its first chunk and its last in the first row; one that stands on
// the stages twice has so many chunks as there are rows, and a straight one never has both.
CsvForm form_of_csv(std::string_view text);
// Errors name row and column, and a circle of stages that wait for each other. Empty cells are
// idle.
Result<std::vector<StageOrder>> from_csv(const std::string& text, const Pipeline& pipeline,
                                         const std::string& file);

}  // namespace stepcast
