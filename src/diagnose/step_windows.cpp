// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_windows.h"

#include <algorithm>

#include "diagnose/step_repetition.h"

namespace stepcast {
namespace {

double last_end(const std::vector<Activity>& all) {
  double out = all.front().end_s;
  for (const Activity& one : all) out = std::max(out, one.end_s);
  return out;
}

// Marks of a forecast's process, or of the host.
std::vector<TraceStep> marks_of(const Trace& trace, std::int64_t process) {
  std::vector<TraceStep> own;
  for (const TraceStep& one : trace.steps) {
    if (one.process == process) own.push_back(one);
  }
  return own.empty() ? trace.steps : own;
}

// By launches: device work outlasts the host's mark.
void add_launched(const std::vector<TraceStep>& marks, Timeline& timeline) {
  double before = -1;  // the end of what was launched before the mark
  for (const TraceStep& mark : marks) {
    const double begin = mark.begin_us * 1e-6, end = mark.end_us * 1e-6;
    double last = -1;
    bool any = false;
    for (const Activity& one : timeline.activities) {
      const double when = one.launched_s.value_or(one.begin_s);
      if (when < begin) before = std::max(before, one.end_s);
      if (when < begin || when >= end) continue;
      any = true;
      last = std::max(last, one.end_s);
    }
    if (!any) continue;
    // The first step has none before it that ended: it begins with its mark.
    const bool follows = !timeline.steps.empty();
    const Window step{mark.number, follows ? before : std::max(begin, before), last};
    if (step.length() > 0) timeline.steps.push_back(step);
    before = last;
  }
}

}  // namespace

void add_steps(const Trace& trace, std::int32_t device, const StepRules& rules,
               Timeline& timeline) {
  const std::int64_t process = trace.devices[static_cast<std::size_t>(device)];
  const std::vector<TraceStep> marks = marks_of(trace, process);
  if (rules.as_one_step) {
    // Nothing but the whole is asked for.
  } else if (timeline.has_launches) {
    add_launched(marks, timeline);
  } else {
    for (const TraceStep& mark : marks) {
      timeline.steps.push_back({mark.number, mark.begin_us * 1e-6, mark.end_us * 1e-6});
    }
  }
  timeline.steps_from = StepSource::kMarks;
  if (!timeline.steps.empty()) return;
  if (!rules.as_one_step) timeline.steps = repeated_steps(trace, device, rules.least_kernels);
  timeline.steps_from = StepSource::kRepetition;
  if (!timeline.steps.empty()) return;
  timeline.steps_from = StepSource::kWhole;
  // All that the file holds, of all its ranks alike.
  double begin = trace.works.front().begin_us, end = trace.works.front().end_us;
  for (const TraceWork& one : trace.works) {
    begin = std::min(begin, one.begin_us);
    end = std::max(end, one.end_us);
  }
  timeline.steps = {{0, begin * 1e-6, std::max(end * 1e-6, last_end(timeline.activities))}};
}

const char* name_of(StepSource source) {
  if (source == StepSource::kMarks) return "marks";
  return source == StepSource::kRepetition ? "repetition" : "whole_trace";
}

std::size_t first_counted(const Timeline& timeline) {
  return timeline.steps_from == StepSource::kMarks && timeline.steps.size() > 1 ? 1 : 0;
}

const Window& median_step(const Timeline& timeline) {
  const std::size_t first = first_counted(timeline);
  std::vector<std::size_t> order;
  for (std::size_t i = first; i < timeline.steps.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return timeline.steps[i].length(); });
  return timeline.steps[order[(order.size() - 1) / 2]];
}

}  // namespace stepcast
