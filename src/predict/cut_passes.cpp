// SPDX-License-Identifier: Apache-2.0
#include "predict/cut_passes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "program/block_events.h"
#include "program/pass_pair.h"
#include "program/walk.h"

namespace stepcast {
namespace {

// A collective that is pipelined with a product is priced with it, and stays in the pass.
bool is_cut_at(const Operation& operation, const std::vector<AxisGroup>& groups) {
  const auto* collective = std::get_if<Collective>(&operation.work);
  return collective != nullptr && !collective->overlapped &&
         std::ranges::find(groups, collective->group) != groups.end();
}

// Writes the parts of one pass behind the instructions that are there.
class PassParts {
 public:
  PassParts(const Instruction& pass, const std::vector<AxisGroup>& groups,
            std::vector<Instruction>& out)
      : pass_(pass), groups_(groups), out_(out), first_(out.size()) {}

  void add_block(const std::vector<Operation>& operations);
  void finish();

 private:
  std::int32_t place(std::size_t i) const { return block_ + static_cast<std::int32_t>(i); }
  void operation(const std::vector<Operation>& operations, std::size_t i);
  void add_beside(const Operation& operation, std::size_t i);
  void add_call(const Operation& operation, std::size_t i);
  InstructionIndex add_part(const Operation* beside, OperationRange range);
  // Makes a part of what was computed since the last one, up to `end` among the pass's operations.
  void close(std::int32_t end, bool meets = false);
  void begin_block(const std::vector<Operation>& operations);
  void join();

  const Instruction& pass_;
  const std::vector<AxisGroup>& groups_;
  std::vector<Instruction>& out_;
  std::size_t first_;       // the first part
  std::int32_t block_ = 0;  // the first operation of the block
  std::int32_t open_ = 0;   // the first operation that is computed and in no part yet
  InstructionIndex computed_ = kNoInstruction;  // the last on the computing stream
  // What each operation of the block became, who is awaited beside, and what the block's streams
  // begin and end with.
  std::vector<InstructionIndex> made_;
  std::vector<bool> is_awaited_;
  InstructionIndex begin_ = kNoInstruction;
  std::array<InstructionIndex, kBlockStreams> last_{};
  Waits waits_;  // of the next part on the computing stream
};

InstructionIndex PassParts::add_part(const Operation* beside, OperationRange range) {
  Instruction part{beside != nullptr ? stream_of(beside->stream) : pass_.stream,
                   beside != nullptr ? beside->name : pass_.name, *pass_.as<RunPass>()};
  part.as<RunPass>()->part = range;
  if (beside == nullptr) part.waits = std::exchange(waits_, {});
  out_.push_back(std::move(part));
  const auto index = static_cast<InstructionIndex>(out_.size() - 1);
  if (beside == nullptr) computed_ = index;
  return index;
}

void PassParts::close(std::int32_t end, bool meets) {
  const InstructionIndex part = add_part(nullptr, {open_, end, meets});
  for (std::int32_t i = std::max(open_ - block_, 0); i < end - block_; ++i) {
    made_[static_cast<std::size_t>(i)] = part;
  }
  open_ = end;
}

void PassParts::add_call(const Operation& operation, std::size_t i) {
  const auto& inside = std::get<Collective>(operation.work);
  CollectiveCall call{Purpose::kActivations, inside.group, message_of(inside)};
  call.slot = pass_.as<RunPass>()->slot;
  out_.push_back({stream_of(operation.stream), operation.name, call});
  made_[i] = static_cast<InstructionIndex>(out_.size() - 1);
  if (operation.stream == BlockStream::kCompute) computed_ = made_[i];
  open_ = place(i) + 1;
}

// On a stream beside the computing one, behind what it waits for.
void PassParts::add_beside(const Operation& operation, std::size_t i) {
  const bool cut = is_cut_at(operation, groups_);
  made_[i] = add_part(&operation, {place(i), place(i) + (cut ? 0 : 1), cut});
  Waits& waits = out_.back().waits;
  InstructionIndex& last = last_[static_cast<std::size_t>(operation.stream)];
  if (last == kNoInstruction) waits.add(begin_);
  for (const std::int32_t before : operation.after) {
    if (before >= 0) waits.add(made_[static_cast<std::size_t>(before)]);
  }
  open_ = place(i) + 1;
  if (cut) {
    add_call(operation, i);
    out_.back().wait_for(made_[i] - 1);
  }
  last = made_[i];
}

void PassParts::operation(const std::vector<Operation>& operations, std::size_t i) {
  const Operation& operation = operations[i];
  if (operation.stream != BlockStream::kCompute) {
    if (open_ < place(i)) close(place(i));
    return add_beside(operation, i);
  }
  const bool waits =
      std::ranges::any_of(operation.after, [](std::int32_t before) { return before >= 0; });
  if (waits && open_ < place(i)) close(place(i));
  for (const std::int32_t before : operation.after) {
    if (before >= 0) waits_.add(made_[static_cast<std::size_t>(before)]);
  }
  if (is_cut_at(operation, groups_)) {
    close(place(i), true);
    return add_call(operation, i);
  }
  if (is_awaited_[i]) close(place(i) + 1);
}

// The streams beside the computing one begin behind what was computed before the block.
void PassParts::begin_block(const std::vector<Operation>& operations) {
  made_.assign(operations.size(), kNoInstruction);
  is_awaited_.assign(operations.size(), false);
  last_.fill(kNoInstruction);
  if (!runs_beside(operations)) return;
  for (const Operation& operation : operations) {
    const std::int32_t computed = operation.after[static_cast<std::size_t>(BlockStream::kCompute)];
    if (computed >= 0) is_awaited_[static_cast<std::size_t>(computed)] = true;
  }
  if (open_ < block_ || computed_ == kNoInstruction) close(block_);
  begin_ = computed_;
}

void PassParts::join() {
  for (const InstructionIndex last : last_) {
    if (last != kNoInstruction) waits_.add(last);
  }
}

void PassParts::add_block(const std::vector<Operation>& operations) {
  if (!waits_.empty()) close(block_);  // an empty part, in which the block before has ended
  begin_block(operations);
  for (std::size_t i = 0; i < operations.size(); ++i) operation(operations, i);
  const std::int32_t end = place(operations.size());
  if (runs_beside(operations) && open_ < end) close(end);
  join();
  block_ = end;
}

// A part behind the last collective: also where it runs nothing, because a part says which blocks
// begin in it.
void PassParts::finish() {
  add_part(nullptr, {open_, OperationRange::kToTheEnd, false});
  take_begin(out_[first_], pass_);
  take_end(out_.back(), pass_);
}

class PassCutter {
 public:
  PassCutter(const Program& program, const Role& role) : program_(program), role_(role) {}

  std::vector<Instruction> cut(const std::vector<std::vector<AxisGroup>>& cuts);

 private:
  bool has_collectives(const Instruction& what, const std::vector<AxisGroup>& groups) const;
  void add_parts(const Instruction& what, const std::vector<AxisGroup>& groups);

  const Program& program_;
  const Role& role_;
  std::vector<Instruction> out_;
};

bool PassCutter::has_collectives(const Instruction& what,
                                 const std::vector<AxisGroup>& groups) const {
  if (alternates(what)) return false;  // the replay of the pair knows its streams
  bool found = false;
  for_each_operation(program_, role_, what, [&](const Operation& operation, const BlockVisit&) {
    found = found || is_cut_at(operation, groups);
  });
  return found;
}

void PassCutter::add_parts(const Instruction& what, const std::vector<AxisGroup>& groups) {
  PassParts parts(what, groups, out_);
  for_each_block(role_, what, [&](const BlockVisit& at) {
    parts.add_block(operations_of(program_.block(at.block), at.pass));
  });
  parts.finish();
}

std::vector<Instruction> PassCutter::cut(const std::vector<std::vector<AxisGroup>>& cuts) {
  std::vector<InstructionIndex> now;  // of each old instruction: the new one that ends it
  for (std::size_t i = 0; i < role_.instructions.size(); ++i) {
    const Instruction& what = role_.instructions[i];
    const std::size_t first = out_.size();
    if (cuts[i].empty() || !has_collectives(what, cuts[i])) {
      out_.push_back(what);
    } else {
      add_parts(what, cuts[i]);
    }
    out_[first].waits.renumber(now);
    now.push_back(static_cast<InstructionIndex>(out_.size() - 1));
  }
  return std::move(out_);
}

}  // namespace

Program cut_passes(const Program& program, const Cuts& cuts) {
  Program out = program;
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage) {
    out.roles[stage].instructions = PassCutter(program, program.roles[stage]).cut(cuts[stage]);
  }
  return out;
}

}  // namespace stepcast
