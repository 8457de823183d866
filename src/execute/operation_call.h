// SPDX-License-Identifier: Apache-2.0
// One operation of a block, with what it works on: the buffers of its micro-batch, the weights of
// its block, the communicators of its rank.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/expert_rows.h"
#include "execute/flat_state.h"
#include "execute/fp8_history.h"
#include "execute/groups.h"
#include "operation/operation.h"
#include "program/block.h"
#include "program/block_builder.h"

namespace stepcast {

struct Collective;
struct Model;
struct Scenario;

// One micro-batch, in the device's memory: its tokens, those that follow on each of them, and as
// many later ones as there are prediction modules; and the experts of each token, where no scores
// choose them. Nothing where the stage reads no text or has no experts.
struct MicroBatch {
  std::vector<Tensor> text;
  Tensor experts;
};

// Sums over the step, which lie in the device's memory.
struct StepTotals {
  double loss_sum = 0;            // over tokens
  double predicted_loss_sum = 0;  // likewise, of all prediction modules
  double local_squared_norm = 0;  // of the gradients
  float squared_norm = 0;         // over all ranks
};

// Weight of a prediction module's loss beside the model's own: a tenth, shared by all modules
// (Megatron-LM, --mtp-loss-scaling-factor).
double prediction_weight(const Model& model);

// Gradients of one unit on their way to a reduction in a wider type.
struct WideGradients {
  ElementRange unit;
  Tensor data;
};

// A block as it stands in a role; null where it stands in none and has no weights.
struct BlockPlace {
  const Program* program = nullptr;
  const Role* role = nullptr;
  std::size_t chunk = 0, block = 0;
  // Place of a weight among the flat ones of the role. A head may borrow the table of the
  // embedding, which is the first weight of the model.
  ElementRange range(ParameterId weight) const;
};

// How the rows of experts in a buffer lie: as they came, or sorted by expert. Null: it has none.
struct HeldRows {
  std::shared_ptr<const ExpertRows> rows;
  bool sorted = false;
};

// The buffers of one block for one micro-batch; empty where nothing is alive.
struct BlockInstance {
  std::vector<Tensor> buffers;
  std::vector<HeldRows> rows;        // by buffer; none in a block without experts
  std::vector<std::int64_t> counts;  // of rows, by rank and expert, as the host has read them last
  Tensor matrix_largest;             // element of a gathered matrix that is to be cast
};

struct OperationCall {
  const Scenario& scenario;
  const Shape& shape;
  const Block& block;
  const Operation& operation;
  const BlockPlace& place;
  BlockInstance& instance;
  FlatState& state;
  Memory& memory;
  const Groups& groups;
  std::int64_t tp_rank;
  const MicroBatch* micro_batch;
  const std::vector<ElementRange>& counted_elsewhere;  // gradients in the norm of another rank
  StepTotals* totals;                                  // in the device's memory
  WideGradients* wide;                                 // of the cast that is run; null elsewhere
  std::int64_t step;
  const Fp8History* fp8_history;  // where scales are those of the step before; null elsewhere

  OperationCall with(const Operation& other) const;
  const Buffer& buffer(BufferId id) const { return block.buffers[id.index()]; }
  Kernels& kernels() const { return memory.device.kernels(); }
  Storage& tensor(BufferId id) const;
  Array data(BufferId id) const { return tensor(id).array(); }
  Array read(std::size_t i) const { return data(operation.reads[i]); }
  Array write(std::size_t i) const { return data(operation.writes[i]); }
  ProductOperand operand(std::size_t i) const;
  Array weight(std::size_t i) const { return state.parameters(range(i).begin); }
  ProductOperand fp8_matrix(bool backward) const;  // a copy that is kept
  GradientPlace gradient(std::size_t i) const { return state.gradient(range(i)); }

 private:
  ElementRange range(std::size_t i) const;
};

// Runs it. Never fails for a program that check_executable() accepted.
void run_operation(const OperationCall& call);

// A collective among what is computed.
void run_collective(const OperationCall& call, const Collective& collective);
// Makes it a transfer instead, which runs beside what is computed. The transfer holds whatever it
// needs beyond the buffers of the block.
Transfer collective_beside(const OperationCall& call, const Collective& collective);

// Rows that the tokens of this rank make for each expert, of what its router has chosen.
std::vector<std::int64_t> count_chosen(const OperationCall& call, const ExpertShape& shape,
                                       Array chosen);
Tensor order_on_device(const OperationCall& call, const ExpertRows& rows);  // ExpertRows::order()

// Work of attention over a sequence that ranks share. False for other work.
bool run_on_context(const OperationCall& call);

// Work of a layer of experts, whose sizes are those of the rows that there are. False for other
// work.
bool run_on_experts(const OperationCall& call);
// Rows, or their weights, on their way between the ranks of experts and those of their tokens; or
// how many there are. False for other collectives.
bool run_on_experts(const OperationCall& call, const Collective& collective);

// Work that makes copies in fp8, and norms that do some of it. False for other work.
bool run_on_fp8(const OperationCall& call);

// Work over all gradients or states of the rank. False for other work.
bool run_on_state(const OperationCall& call);

}  // namespace stepcast
