// SPDX-License-Identifier: Apache-2.0
// Programs in which every collective of a block runs beside its kernels. Megatron's asynchronous
// backward does so with some of them, and `native`, which most of these programs are of, with none.
#pragma once

#include <utility>

#include "operation/block_stream.h"
#include "operation/collective.h"
#include "operation/operation.h"
#include "program/block.h"
#include "program/liveness.h"
#include "program/program.h"

namespace stepcast {
struct Program;
}  // namespace stepcast

namespace stepcast::testing {

// `stream(operation)` says where an operation of a block runs.
template <class StreamOf>
Program on_streams(Program program, StreamOf stream) {
  for (Block& block : program.blocks) {
    for (BlockPass& pass : block.passes) {
      for (Operation& operation : pass.operations) operation.stream = stream(operation);
    }
    finish_block(block);
  }
  return program;
}

inline bool is_collective(const Operation& operation) {
  return std::holds_alternative<Collective>(operation.work);
}

// All collectives beside all kernels.
inline Program asynchronous(Program program) {
  return on_streams(std::move(program), [](const Operation& operation) {
    return is_collective(operation) ? BlockStream::kCommunication : BlockStream::kCompute;
  });
}

}  // namespace stepcast::testing
