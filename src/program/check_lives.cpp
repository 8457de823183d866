// SPDX-License-Identifier: Apache-2.0
#include "program/check_lives.h"

#include <fmt/format.h>

#include <vector>

#include "operation/operation.h"
#include "program/program.h"

namespace stepcast {
namespace {

enum class State : std::uint8_t { kUnborn, kAlive, kHandedOn, kDead };

const char* words_of(State state) {
  switch (state) {
    case State::kUnborn:
      return "which nothing has written yet";
    case State::kAlive:
      return "which is alive already";
    case State::kHandedOn:
      return "which the block has handed on";
    case State::kDead:
      return "which is dead";
  }
  return "";
}

class LifeCheck {
 public:
  LifeCheck(const Block& block, const BlockLives& lives)
      : block_(block), lives_(lives), states_(block.buffers.size(), State::kUnborn) {}

  std::optional<std::string> run() {
    bear(block_.input);
    for (const Pass pass : passes_of(block_.form)) {
      const bool first_backward = pass == Pass::kBackward || pass == Pass::kInputGradient;
      if (first_backward) bear(block_.output_gradient);
      walk(pass);
      if (pass == Pass::kForward) hand_on(pass, block_.output);
      if (first_backward) hand_on(pass, block_.input_gradient);
      if (fault_) return fault_;
    }
    for (std::size_t b = 0; b < states_.size(); ++b) {
      if (states_[b] != State::kAlive) continue;
      return fmt::format("{}: {} is never freed", name_of(block_.kind), block_.buffers[b].name);
    }
    return std::nullopt;
  }

 private:
  State& state(BufferId id) { return states_[id.index()]; }
  void bear(BufferId id) {  // outside
    if (id.valid()) state(id) = State::kAlive;
  }

  void walk(Pass pass) {
    const std::vector<Operation>& operations = block_.pass(pass).operations;
    for (std::size_t i = 0; i < operations.size() && !fault_; ++i) {
      const OperationLives& own = lives_.pass(pass)[i];
      const Operation& what = operations[i];
      for (const BufferId id : own.births) turn(pass, what, "bears", id, State::kUnborn);
      for (const BufferId id : own.births) state(id) = State::kAlive;
      for (const BufferId id : what.reads) turn(pass, what, "reads", id, State::kAlive);
      for (const BufferId id : what.writes) turn(pass, what, "writes", id, State::kAlive);
      for (const BufferId id : own.deaths) {
        turn(pass, what, "frees", id, State::kAlive);
        state(id) = State::kDead;
      }
    }
  }

  void turn(Pass pass, const Operation& what, const char* does, BufferId id, State expected) {
    if (fault_ || state(id) == expected) return;
    fault_ = fmt::format("{}, {}: {} {} {}, {}", name_of(block_.kind), name_of(pass), what.name,
                         does, block_.buffers[id.index()].name, words_of(state(id)));
  }

  void hand_on(Pass pass, BufferId id) {
    if (!id.valid() || fault_) return;
    if (state(id) != State::kAlive) {
      fault_ = fmt::format("{}, {}: the pass hands on {}, {}", name_of(block_.kind), name_of(pass),
                           block_.buffers[id.index()].name, words_of(state(id)));
    }
    state(id) = State::kHandedOn;
  }

  const Block& block_;
  const BlockLives& lives_;
  std::vector<State> states_;
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> fault_of(const Block& block, const BlockLives& lives) {
  return LifeCheck(block, lives).run();
}

}  // namespace stepcast
