// SPDX-License-Identifier: Apache-2.0
#include "program/block_events.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "operation/block_stream.h"
#include "operation/buffer.h"
#include "operation/operation.h"
#include "program/program.h"
#include "program/stream_clock.h"

namespace stepcast {
namespace {

using ByStream = StreamClock<kBlockStreams>;
constexpr ByStream kNobody{-1, -1, -1};

// The latest users of one buffer.
struct Users {
  ByStream writer = kNobody;
  ByStream readers = kNobody;
};

class Events {
 public:
  explicit Events(std::size_t buffers) : users_(buffers) {}

  void place(Operation& operation, std::int32_t index) {
    operation.after = kNobody;
    if (operation.stream == BlockStream::kCommunication) operation.after[kComputing] = computed_;
    if (operation.stream == BlockStream::kCompute) computed_ = index;
    for (const BufferId id : operation.reads) wait(operation, users_[id.index()].writer);
    for (const BufferId id : operation.writes) {
      wait(operation, users_[id.index()].writer);
      wait(operation, users_[id.index()].readers);
    }
    const auto own = static_cast<std::size_t>(operation.stream);
    operation.after[own] = -1;  // the stream keeps this order by itself
    for (const BufferId id : operation.reads) users_[id.index()].readers[own] = index;
    for (const BufferId id : operation.writes) {
      users_[id.index()] = {};
      users_[id.index()].writer[own] = index;
    }
  }

 private:
  static void wait(Operation& operation, const ByStream& users) { follow(operation.after, users); }

  static constexpr auto kComputing = static_cast<std::size_t>(BlockStream::kCompute);
  std::vector<Users> users_;
  std::int32_t computed_ = -1;  // the latest on the computing stream
};

// By operation: on each stream, the latest operation that has ended when it has. It knows of what
// it waits for, of the one before it on its stream, and of all that these have waited for.
std::vector<ByStream> ended_with(const std::vector<Operation>& pass) {
  std::vector<ByStream> out;
  out.reserve(pass.size());
  ByStream latest = kNobody;
  for (const Operation& operation : pass) {
    const auto index = static_cast<std::int32_t>(out.size());
    const auto own = static_cast<std::size_t>(operation.stream);
    ByStream ended = kNobody;
    const auto take = [&](std::int32_t before) {
      if (before >= 0) follow(ended, out[static_cast<std::size_t>(before)]);
    };
    take(latest[own]);
    for (const std::int32_t before : operation.after) take(before);
    ended[own] = index;
    latest[own] = index;
    out.push_back(ended);
  }
  return out;
}

}  // namespace

void place_events(Block& block) {
  for (BlockPass& pass : block.passes) {
    Events events(block.buffers.size());
    for (std::size_t i = 0; i < pass.operations.size(); ++i) {
      events.place(pass.operations[i], static_cast<std::int32_t>(i));
    }
  }
}

bool runs_beside(const std::vector<Operation>& pass) {
  return std::any_of(pass.begin(), pass.end(), [](const Operation& operation) {
    return operation.stream != BlockStream::kCompute;
  });
}

std::vector<std::int32_t> uses_end(const std::vector<Operation>& pass) {
  std::vector<std::int32_t> out(pass.size());
  std::iota(out.begin(), out.end(), 0);
  if (!runs_beside(pass)) return out;
  const std::vector<ByStream> ended = ended_with(pass);
  for (std::size_t i = 0; i < pass.size(); ++i) {
    if (pass[i].stream == BlockStream::kCompute) continue;
    const auto own = static_cast<std::size_t>(pass[i].stream);
    std::size_t waiting = i + 1;
    while (waiting < pass.size() && (pass[waiting].stream != BlockStream::kCompute ||
                                     ended[waiting][own] < static_cast<std::int32_t>(i))) {
      ++waiting;
    }
    out[i] = static_cast<std::int32_t>(std::min(waiting, pass.size() - 1));
  }
  return out;
}

}  // namespace stepcast
