// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_windows.h"

#include <algorithm>

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

void add_steps(const Trace& trace, std::int64_t process, Timeline& timeline) {
  const std::vector<TraceStep> marks = marks_of(trace, process);
  if (timeline.has_launches) {
    add_launched(marks, timeline);
  } else {
    for (const TraceStep& mark : marks) {
      timeline.steps.push_back({mark.number, mark.begin_us * 1e-6, mark.end_us * 1e-6});
    }
  }
  timeline.has_marks = !timeline.steps.empty();
  if (timeline.has_marks) return;
  // Without marks all that the file holds is one step, of all its ranks alike.
  double begin = trace.works.front().begin_us, end = trace.works.front().end_us;
  for (const TraceWork& one : trace.works) {
    begin = std::min(begin, one.begin_us);
    end = std::max(end, one.end_us);
  }
  timeline.steps = {{0, begin * 1e-6, std::max(end * 1e-6, last_end(timeline.activities))}};
}

const Window& median_step(const Timeline& timeline) {
  const std::size_t first = timeline.steps.size() > 1 ? 1 : 0;
  std::vector<std::size_t> order;
  for (std::size_t i = first; i < timeline.steps.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return timeline.steps[i].length(); });
  return timeline.steps[order[(order.size() - 1) / 2]];
}

}  // namespace stepcast
