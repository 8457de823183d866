// SPDX-License-Identifier: Apache-2.0
// One operation of a block, with what it works on: the buffers of its micro-batch, the weights of
// its block, its tensor-parallel group.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/device_communicator.h"
#include "execute/flat_state.h"
#include "program/block_builder.h"

namespace stepcast {

// Tokens of one micro-batch, in the device's memory.
struct MicroBatch {
  Tensor tokens, targets;
};

// What is summed over the step, in the device's memory.
struct StepTotals {
  double loss_sum = 0;            // over tokens
  double local_squared_norm = 0;  // of the gradients
  float squared_norm = 0;         // over all ranks
};

// Gradients of one unit on their way to a reduction in a wider type.
struct WideGradients {
  ElementRange unit;
  Tensor data;
};

// A block as it stands in a role.
struct BlockPlace {
  std::int64_t offset;        // of its flat parameters
  std::int64_t table_offset;  // of the table that a head may borrow
};

// The buffers of one block for one micro-batch; empty where nothing is alive.
struct BlockInstance {
  std::vector<Tensor> buffers;
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
  DeviceCommunicator* tensor;  // null: one rank, or traffic is left out
  std::int64_t tp_rank;
  const MicroBatch* micro_batch;
  const std::vector<ElementRange>& counted_elsewhere;  // gradients in the norm of another rank
  StepTotals* totals;                                  // in the device's memory
  WideGradients* wide;                                 // of the cast that is run; null elsewhere
  std::int64_t step;

  const Buffer& buffer(BufferId id) const { return block.buffers[id.index()]; }
  Kernels& kernels() const { return memory.device.kernels(); }
  Array data(BufferId id) const;
  Array read(std::size_t i) const { return data(operation.reads[i]); }
  Array write(std::size_t i) const { return data(operation.writes[i]); }
  Array weight(std::size_t i) const { return state.parameters(range(i).begin); }
  GradientPlace gradient(std::size_t i) const { return state.gradient(range(i)); }

 private:
  ElementRange range(std::size_t i) const;
};

// Runs it. Never fails for a program that check_executable() accepted.
void run_operation(const OperationCall& call);

void run_collective(const OperationCall& call, const Collective& collective);

// Work over all gradients or states of the rank. False for other work.
bool run_on_state(const OperationCall& call);

}  // namespace stepcast
