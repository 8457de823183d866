// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/assert.h"
#include "schedule/schedule.h"

namespace stepcast {

// Each fills its row in a file of its own.
extern const Schedule kGpipe;
extern const Schedule kOneForwardOneBackward;
extern const Schedule kInterleaved;
extern const Schedule kLoopedBfs;
extern const Schedule kZbH1;
extern const Schedule kZbH2;
extern const Schedule kZb1p;
extern const Schedule kZb2p;
extern const Schedule kZbV;
extern const Schedule kOneForwardOneBackwardV;
extern const Schedule kVHalf;
extern const Schedule kVMin;
extern const Schedule kDualPipe;
extern const Schedule kDualPipeV;
extern const Schedule kAuto;

namespace {

// "file:PATH": the order stands in the file.
constexpr Schedule kFile = {.name = "file", .from_file = true};

constexpr const Schedule* kSchedules[] = {&kGpipe,       &kOneForwardOneBackward,
                                          &kInterleaved, &kLoopedBfs,
                                          &kZbH1,        &kZbH2,
                                          &kZb1p,        &kZb2p,
                                          &kZbV,         &kOneForwardOneBackwardV,
                                          &kVHalf,       &kVMin,
                                          &kDualPipe,    &kDualPipeV,
                                          &kAuto,        &kFile};

}  // namespace

std::span<const Schedule* const> schedules() { return kSchedules; }

std::vector<std::string> made_schedules() {
  std::vector<std::string> out;
  for (const Schedule* schedule : kSchedules) {
    if (schedule->is_made()) out.emplace_back(schedule->name);
  }
  return out;
}

const Schedule& rules_of(ScheduleKind kind) { return *kSchedules[static_cast<std::size_t>(kind)]; }

const char* name_of(ScheduleKind kind) { return rules_of(kind).name; }

ScheduleKind schedule_named(std::string_view name) {
  const auto found = std::ranges::find(kSchedules, name, [](const Schedule* s) { return s->name; });
  STEPCAST_ASSERT(found != std::end(kSchedules), "a name of the list");
  return static_cast<ScheduleKind>(found - std::begin(kSchedules));
}

ScheduleKind default_schedule() {
  static const ScheduleKind found = schedule_named(kOneForwardOneBackward.name);
  return found;
}

}  // namespace stepcast
