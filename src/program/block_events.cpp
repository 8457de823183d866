// SPDX-License-Identifier: Apache-2.0
#include "program/block_events.h"

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

using ByStream = std::array<std::int32_t, kBlockStreams>;
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
  static void wait(Operation& operation, const ByStream& users) {
    for (std::size_t s = 0; s < users.size(); ++s) {
      operation.after[s] = std::max(operation.after[s], users[s]);
    }
  }

  std::vector<Users> users_;
};

}  // namespace

void place_events(Block& block) {
  for (BlockPass& pass : block.passes) {
    Events events(block.buffers.size());
    for (std::size_t i = 0; i < pass.operations.size(); ++i) {
      events.place(pass.operations[i], static_cast<std::int32_t>(i));
    }
  }
}

std::vector<std::int32_t> uses_end(const std::vector<Operation>& pass) {
  std::vector<std::int32_t> out;
  out.reserve(pass.size());
  for (auto i = pass.begin(); i != pass.end(); ++i) {
    const auto index = static_cast<std::int32_t>(i - pass.begin());
    out.push_back(index);
    if (i->stream == BlockStream::kCompute) continue;
    const auto own = static_cast<std::size_t>(i->stream);
    const auto waiting = std::find_if(
        i, pass.end(), [&](const Operation& later) { return later.after[own] >= index; });
    out.back() = static_cast<std::int32_t>((waiting == pass.end() ? pass.end() - 1 : waiting) -
                                           pass.begin());
  }
  return out;
}

}  // namespace stepcast
