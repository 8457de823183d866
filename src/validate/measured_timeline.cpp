// SPDX-License-Identifier: Apache-2.0
#include "validate/measured_timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "predict/attribution.h"
#include "predict/meetings.h"

namespace stepcast {
// Instructions of several ranks that are one transfer.
class MeasuredTimelines::Meetings {
 public:
  Meetings(const Program& program, const RankGrid& grid, const std::vector<RankFile>& files)
      : program_(program), grid_(grid), files_(files), number_(program.roles.size()) {
    // A program that was lowered pairs every send with a receive.
    if (auto partner = match_transfers(program)) partner_ = std::move(*partner);
    by_number_.resize(program.roles.size());
    for (std::size_t s = 0; s < program.roles.size(); ++s) {
      const auto& instructions = program.roles[s].instructions;
      number_[s].assign(instructions.size(), 0);
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        const auto* call = instructions[i].as<CollectiveCall>();
        if (call == nullptr) continue;
        auto& issued = by_number_[s][{call->group, instructions[i].stream}];
        number_[s][i] = issued.size();
        issued.push_back(i);
      }
    }
  }

  // When the last of those who take part came to it.
  double in_flight(RankId rank, std::size_t instruction, std::size_t step) const {
    const auto stage = static_cast<std::size_t>(grid_.point(rank).pp);
    const Instruction& what = program_.roles[stage].instructions[instruction];
    double last = start_of(rank, step, instruction);
    const StageTransfer* moved = what.transfer();
    if (const auto* call = what.as<CollectiveCall>()) {
      for (const RankId member : grid_.members(call->group, rank)) {
        const auto& theirs = by_number_[static_cast<std::size_t>(grid_.point(member).pp)];
        const auto found = theirs.find({call->group, what.stream});
        const std::size_t number = number_[stage][instruction];
        if (found == theirs.end() || number >= found->second.size()) continue;
        last = std::max(last, start_of(member, step, found->second[number]));
      }
    } else if (moved != nullptr && stage < partner_.size() && partner_[stage][instruction] >= 0) {
      GridPoint peer = grid_.point(rank);
      peer.pp = moved->peer;
      last = std::max(last, start_of(grid_.rank(peer), step,
                                     static_cast<std::size_t>(partner_[stage][instruction])));
    }
    return last;
  }

 private:
  // All members of a group issue its collectives on one stream in the same order, so these are
  // numbered.
  using Key = std::pair<AxisGroup, Stream>;
  double start_of(RankId rank, std::size_t step, std::size_t instruction) const {
    return files_[rank.index()].steps[step].spans[instruction].start;
  }

  const Program& program_;
  const RankGrid& grid_;
  const std::vector<RankFile>& files_;
  std::vector<std::vector<std::int32_t>> partner_;  // by stage and instruction
  std::vector<std::vector<std::size_t>> number_;    // of a collective, by stage and instruction
  std::vector<std::map<Key, std::vector<std::size_t>>> by_number_;  // by stage
};

namespace {

using InFlight = std::function<double(std::size_t instruction)>;

double last_compute_end(const Role& role, const MeasuredStep& step) {
  double end = step.begin;
  for (std::size_t i = 0; i < step.spans.size(); ++i) {
    if (role.instructions[i].stream == Stream::kCompute) end = std::max(end, step.spans[i].end);
  }
  return end;
}

// Reads spans as TimelineReader of predict/timeline.cpp reads a forecast, case by case.
class SpanReader {
 public:
  // `in_flight` is empty for a rank alone.
  SpanReader(const Role& role, const MeasuredStep& step, double begin, InFlight in_flight)
      : role_(role), step_(step), in_flight_(std::move(in_flight)), now_(begin) {}

  MeasuredTimeline read() {
    for (std::size_t i = 0; i < step_.spans.size(); ++i) {
      const Instruction& what = role_.instructions[i];
      if (what.stream != Stream::kCompute) continue;
      wait_for(what, step_.spans[i].start);
      if (what.is_run()) {
        spend(out_.parts.other, step_.spans[i].start);
        run(what, step_.spans[i]);
      } else if (const auto* call = what.as<CollectiveCall>()) {
        collective(call->group, i);
      }
    }
    out_.step_end = now_;
    return out_;
  }

 private:
  void spend(Seconds& part, double until) {
    if (until <= now_) return;
    part += Seconds(until - now_);
    now_ = until;
  }

  // Spends a gap before `what` on the operations that it waited for, the earliest to end first.
  void wait_for(const Instruction& what, double until) {
    if (!in_flight_) return;
    Waits waits = what.waits;
    const auto end_of = [&](std::int32_t wait) {
      return step_.spans[static_cast<std::size_t>(wait)].end;
    };
    std::sort(waits.begin(), waits.end(),
              [&](std::int32_t a, std::int32_t b) { return end_of(a) < end_of(b); });
    for (const std::int32_t wait : waits) wait_for_transfer(static_cast<std::size_t>(wait), until);
  }

  void wait_for_transfer(std::size_t index, double limit) {
    const Instruction& awaited = role_.instructions[index];
    if (awaited.is_run() || awaited.is<HostWait>()) return;
    const double until = std::min(step_.spans[index].end, limit);
    const double flight = std::min(in_flight_(index), until);
    if (awaited.transfer() != nullptr) {
      spend(out_.parts.bubble, flight);
      spend(out_.parts.exposed_pp, until);
      return;
    }
    wait_for(awaited, std::min(step_.spans[index].start, until));  // what it waited for itself
    const auto* call = awaited.as<CollectiveCall>();
    if (call == nullptr) {
      spend(out_.parts.exposed_offload, until);
      return;
    }
    const double before = now_;
    if (!inside_a_stage(call->group)) spend(out_.parts.bubble, flight);
    spend(exposed_part(out_.parts, call->group), until);
    if (inside_a_stage(call->group)) pending_ += now_ - before;
  }

  void run(const Instruction& what, const MeasuredSpan& span) {
    const double duration = span.end - span.start;
    (what.phase() == Phase::kOptimizer ? out_.parts.optimizer : out_.parts.compute) +=
        Seconds(duration);
    now_ = span.end;
    if (!in_span(what)) return;
    if (!span_open_) out_.span_begin = span.start;
    if (span_open_) out_.exposed_in_span += pending_;
    pending_ = 0;
    span_open_ = true;
    out_.span_end = span.end;
    out_.busy += duration;
  }

  void collective(AxisGroup group, std::size_t index) {
    const MeasuredSpan& span = step_.spans[index];
    spend(out_.parts.other, in_flight_ ? span.start : span.end);
    if (!in_flight_) return;
    const double before = now_;
    // Until all members have arrived; across stages that is the pipeline draining.
    spend(inside_a_stage(group) ? exposed_part(out_.parts, group) : out_.parts.bubble,
          std::min(in_flight_(index), span.end));
    spend(exposed_part(out_.parts, group), span.end);
    if (inside_a_stage(group)) pending_ += now_ - before;
  }

  const Role& role_;
  const MeasuredStep& step_;
  InFlight in_flight_;
  MeasuredTimeline out_;
  double now_;  // everything before is attributed
  bool span_open_ = false;
  double pending_ = 0;  // exposed since the last pass: inside the span if another pass follows
};

}  // namespace

MeasuredTimelines::MeasuredTimelines(const Program& program, const RankGrid& grid,
                                     const std::vector<RankFile>& files)
    : program_(program),
      grid_(grid),
      files_(files),
      meetings_(std::make_unique<Meetings>(program, grid, files)) {}

MeasuredTimelines::~MeasuredTimelines() = default;

MeasuredTimeline MeasuredTimelines::read(std::size_t file, std::size_t step) const {
  const RankId rank = files_[file].rank;
  const Role& role = program_.roles[static_cast<std::size_t>(grid_.point(rank).pp)];
  const std::vector<MeasuredStep>& steps = files_[file].steps;
  const double begin = step > 0 ? last_compute_end(role, steps[step - 1]) : steps[step].begin;
  InFlight in_flight;
  if (static_cast<std::int64_t>(files_.size()) == grid_.size()) {
    in_flight = [&](std::size_t instruction) {
      return meetings_->in_flight(rank, instruction, step);
    };
  }
  return SpanReader(role, steps[step], begin, std::move(in_flight)).read();
}

}  // namespace stepcast
