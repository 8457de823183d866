// SPDX-License-Identifier: Apache-2.0
// Runs the program of one rank, instruction by instruction: the object that the simulator replays,
// with real buffers, kernels and transfers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "execute/expert_spread.h"
#include "execute/groups.h"
#include "execute/markov_text.h"
#include "execute/operation_call.h"
#include "execute/pass_streams.h"
#include "program/liveness.h"
#include "program/program.h"

namespace stepcast {

struct ActivationCopy;
struct HostUpdate;
struct Instruction;
struct Receive;
struct RunPass;
struct Scenario;
struct Send;
struct StageTransfer;
struct StateCopy;

struct ExecutorOptions {
  std::uint64_t seed = 1;
  std::int64_t fan_out = 4;  // of the text's Markov chain
  // Experts are chosen by the router's scores; or by the seed, as `spread` says, by default as the
  // scenario's layout spreads rows.
  bool by_scores = false;
  std::optional<ExpertSpread> spread = {};
  std::function<void()> alive = {};  // called between parameters while weights are made, if any
};

// Begin and end of one instruction, in seconds since its step began.
struct InstructionSpan {
  double start = 0, end = 0;
};

struct StepRecord {
  Clock::time_point begin;  // its text being there
  double seconds = 0;       // from the start of the step to the end of its last instruction
  double loss_sum = 0;      // over the tokens of this rank's pipeline; last stages alone. That of
                            // prediction modules counts with its weight.
  double gradient_norm = 0;
  std::vector<InstructionSpan> spans;  // by instruction
};

class RoleRunner {
 public:
  // `world` has one rank per rank of the grid. Null: one rank of the layout alone, what others
  // would send is left out.
  RoleRunner(const Scenario& scenario, const Program& program, const RankGrid& grid, RankId rank,
             DeviceCommunicator* world, std::unique_ptr<Device> device,
             const ExecutorOptions& options);
  ~RoleRunner();
  RoleRunner(const RoleRunner&) = delete;
  RoleRunner& operator=(const RoleRunner&) = delete;

  StepRecord step();
  void observe(OperationObserver* observer) { observer_ = observer; }  // null: nobody

  const Role& role() const { return role_; }
  const Shape& shape() const { return shape_; }
  const GridPoint& point() const { return point_; }
  const ModelPart& part() const { return part_; }
  const std::vector<PlacedParameter>& parameters() const { return parameters_; }
  FlatState& state() { return state_; }
  MemoryLedger& ledger() { return memory_.ledger; }
  MemoryLedger& host_ledger() { return memory_.host_ledger; }
  Device& device() { return *device_; }

 private:
  // A unit's gradients that a reduction has summed.
  struct SummedGradients {
    Array data;
    Tensor wide;
  };
  using PassKey = std::tuple<bool, std::int32_t, std::int32_t>;  // forward, chunk, micro-batch

  static PassKey key_of(const Slot& slot) {
    return {slot.pass == Pass::kForward, slot.chunk, slot.micro_batch};
  }
  Tensor take(const Slot& slot, bool first_block);
  bool is_first_of_model(const Chunk& chunk) const { return chunk.model_chunk == 0; }
  bool is_last_of_model(const Chunk& chunk) const;
  void prepare_micro_batches();
  void issue(std::int32_t index);
  std::vector<EventHandle> awaited(const Instruction& what) const;
  void run_here(const Transfer& transfer);
  WideGradients* wide_gradients_for(std::int32_t index);
  void run_pass(const RunPass& pass);
  void run_block(const Slot& slot, std::int32_t index);
  void run_operations(const Block& block, const BlockPlace& place, BlockInstance& instance,
                      const std::vector<Operation>& operations,
                      const std::vector<OperationLives>& lives, const MicroBatch* batch,
                      WideGradients* wide);
  void give_birth(const Block& block, const Operation& operation,
                  const std::vector<BufferId>& births, BlockInstance& instance);
  void post_beside(const OperationCall& call, std::size_t i, PassStreams& streams);
  void run_unplaced(const Block& block, WideGradients* wide);
  Transfer collective(const Instruction& what);
  Transfer all_in_copy(const CollectiveCall& call, DeviceCommunicator* group);
  Transfer all_in_place(const CollectiveCall& call, DeviceCommunicator* group);
  Transfer all_in_shard(const CollectiveCall& call, DeviceCommunicator* group);
  Transfer gather(const CollectiveCall& call, DeviceCommunicator* group);
  Transfer reduce(const CollectiveCall& call, DeviceCommunicator* group);
  bool has_copies(const CollectiveCall& call) const;
  Transfer sum_copies(const CollectiveCall& call, DeviceCommunicator* group);
  Transfer reduce_replicated(DeviceCommunicator* group);
  Transfer reduce_norm(DeviceCommunicator* group);
  Transfer gather_boundary(const Slot& slot, DeviceCommunicator* group);
  Transfer send(const Send& send, Stream stream);
  Transfer receive(const Receive& receive, Stream stream);
  Transfer copy(const ActivationCopy& copy);
  Transfer copy(const StateCopy& copy);
  Transfer copy_gradients(const StateCopy& copy);
  Transfer copy_updated(const StatePart& part);
  Transfer reload(ElementRange elements);
  Transfer update(const HostUpdate& update);
  StartTraffic move(Array from, Array to, std::int64_t elements, CopyDirection direction);
  std::function<void()> keep_shard(const CollectiveCall& call, const SummedGradients& summed);
  Tensor take_reloaded(ElementRange elements);
  void open_windows(const Instruction& what);
  void close_windows(const Instruction& what);
  ElementRange unit_of(ElementRange range) const;
  MicroBatch load(std::int32_t micro_batch);
  Tensor choose_experts(std::int32_t micro_batch);
  std::int64_t first_sequence(std::int32_t micro_batch) const;
  Tensor put(const std::vector<std::int64_t>& values);
  std::vector<ElementRange> counted_elsewhere() const;
  Slice boundary_slice() const;
  Transfer message(const Tensor& tensor, const StageTransfer& moved, bool sends,
                   Stream stream) const;
  StepTotals* totals() const { return static_cast<StepTotals*>(totals_->array().data); }
  StepTotals totals_on_host();

  const Scenario& scenario_;
  const Program& program_;
  const RankGrid& grid_;
  RankId rank_;
  GridPoint point_;
  ModelPart part_;
  const Role& role_;
  Shape shape_;
  std::vector<PlacedParameter> parameters_;
  ExecutorOptions options_;
  std::vector<BlockLives> lives_;  // by block of the program
  std::unique_ptr<Device> device_;
  Memory memory_;
  Groups groups_;
  FlatState state_;
  Tensor placeholder_;  // Role::persistent's workspace
  MarkovText text_;
  std::optional<Fp8History> fp8_history_;
  std::optional<ExpertChoice> choice_;  // of experts by the seed
  OperationObserver* observer_ = nullptr;

  std::int64_t step_ = 0;
  std::vector<ElementRange> counted_elsewhere_;
  Tensor totals_;                    // one StepTotals
  std::vector<EventHandle> events_;  // by instruction
  std::map<std::int32_t, MicroBatch> micro_batches_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, BlockInstance>
      instances_;                                   // by chunk, block, micro-batch
  std::map<PassKey, Tensor> arriving_, leaving_;    // what a pass reads, what it has made
  std::vector<Tensor> returned_;                    // from host memory, until the step has ended
  std::map<std::int64_t, EventHandle> reductions_;  // by begin of their unit
  std::map<std::int64_t, WideGradients> wide_;      // likewise, until they are reduced
  // They are reduced among the ranks of one copy, and not among the copies yet; by begin too.
  std::map<std::int64_t, SummedGradients> summed_;
  // Gradients on their way to the host, and parameters that have come from it, likewise.
  std::map<std::int64_t, Tensor> gradients_out_, reloaded_;
};

}  // namespace stepcast
