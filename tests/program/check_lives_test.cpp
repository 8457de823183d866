// SPDX-License-Identifier: Apache-2.0
// A faulty lowering is found out, with its block, operation and buffer. Each test takes a sound
// layer and spoils it in one way.
#include "program/check_lives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "program/decoder_layer.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using ::testing::Test;

class BlockLife : public Test {
 protected:
  BlockLife() : block_(lower_decoder_layer(testing::gpt({}), RecomputeMode::kNone)) {
    lives_ = trace_lives(block_);
  }

  BufferId buffer(const std::string& name) const {
    for (std::size_t b = 0; b < block_.buffers.size(); ++b) {
      if (block_.buffers[b].name == name) return BufferId(b);
    }
    ADD_FAILURE() << "no buffer " << name;
    return {};
  }
  std::size_t operation(Pass pass, const std::string& name) const {
    const std::vector<Operation>& all = block_.pass(pass).operations;
    const auto found = std::ranges::find(all, name, [](const Operation& o) { return o.name; });
    EXPECT_NE(found, all.end()) << name;
    return static_cast<std::size_t>(found - all.begin());
  }
  std::vector<OperationLives>& lives(Pass pass) {
    return lives_.passes[static_cast<std::size_t>(pass)];
  }
  // The operation that frees a buffer.
  OperationLives& death_of(BufferId id) {
    for (std::vector<OperationLives>& pass : lives_.passes) {
      for (OperationLives& own : pass) {
        if (std::ranges::find(own.deaths, id) != own.deaths.end()) return own;
      }
    }
    throw std::logic_error("the buffer never dies");
  }
  std::string fault() const { return fault_of(block_, lives_).value_or("sound"); }

  Block block_;
  BlockLives lives_;
};

TEST_F(BlockLife, OfALayerIsSound) { EXPECT_EQ(fault(), "sound"); }

// A norm whose output is dropped though the product behind it still reads it.
TEST_F(BlockLife, NamesWhoReadsWhatNothingHasWritten) {
  Operation& norm =
      block_.pass(Pass::kForward).operations[operation(Pass::kForward, "attention_norm")];
  norm.writes.clear();
  lives_ = trace_lives(block_);
  EXPECT_EQ(fault(), "layer, forward: qkv reads attention_norm, which nothing has written yet");
  EXPECT_THROW(finish_block(block_), std::logic_error);
}

TEST_F(BlockLife, NamesWhoReadsWhatIsWrittenLater) {
  std::vector<Operation>& all = block_.pass(Pass::kForward).operations;
  std::swap(all[operation(Pass::kForward, "attention_norm")],
            all[operation(Pass::kForward, "qkv")]);
  lives_ = trace_lives(block_);
  EXPECT_EQ(fault(), "layer, forward: qkv reads attention_norm, which nothing has written yet");
}

TEST_F(BlockLife, NamesWhoReadsWhatIsFreed) {
  const BufferId normed = buffer("attention_norm");
  std::erase(death_of(normed).deaths, normed);
  lives(Pass::kForward)[operation(Pass::kForward, "qkv")].deaths.push_back(normed);
  EXPECT_EQ(fault(), "layer, backward: qkv_wgrad reads attention_norm, which is dead");
}

TEST_F(BlockLife, NamesWhoFreesABufferTwice) {
  const BufferId normed = buffer("attention_norm");
  death_of(normed).deaths.push_back(normed);
  EXPECT_EQ(fault(), "layer, backward: qkv_wgrad frees attention_norm, which is dead");
}

TEST_F(BlockLife, NamesWhatIsNeverFreed) {
  const BufferId normed = buffer("attention_norm");
  std::erase(death_of(normed).deaths, normed);
  EXPECT_EQ(fault(), "layer: attention_norm is never freed");
}

TEST_F(BlockLife, NamesWhatIsBornTwice) {
  lives(Pass::kBackward).front().births.push_back(buffer("attention_norm"));
  EXPECT_NE(fault().find("bears attention_norm, which is alive already"), std::string::npos)
      << fault();
}

// Behind its forward a block's output is the next one's, who frees it before this one's backward.
TEST_F(BlockLife, NamesWhoReadsAnOutputThatWasHandedOn) {
  block_.pass(Pass::kBackward).operations.front().reads.push_back(block_.output);
  lives_ = trace_lives(block_);
  EXPECT_NE(fault().find("which the block has handed on"), std::string::npos) << fault();
}

TEST_F(BlockLife, NamesAnInputThatNobodyFrees) {
  const BufferId input = block_.input;
  std::erase(death_of(input).deaths, input);
  EXPECT_EQ(fault(), "layer: layer_input is never freed");
}

}  // namespace
}  // namespace stepcast
