// SPDX-License-Identifier: Apache-2.0
// A schedule by its name, and how it places chunks: what a layout says. schedule/schedule.h has the
// rest.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// Model chunk c sits on stage c mod stages; a folded model comes back up: chunk c of the second
// half sits on stage 2*stages-1-c, so that the last chunk is beside the first. A mirrored model has
// as many chunks as stages and stands on them twice: the first half of the micro-batches goes down
// and meets chunk c on stage c, the second half comes up and meets it on stage stages-1-c.
enum class Placement { kStraight, kFolded, kMirrored };

// How a file's order of passes stands on the stages: csv.cpp tells it by the cells.
struct CsvForm {
  Placement placement = Placement::kStraight;
  bool splits_backward = false;  // has weight gradients apart
};

// A row of schedules().
enum class ScheduleKind : std::uint8_t {};
const char* name_of(ScheduleKind kind);
ScheduleKind schedule_named(std::string_view name);  // which must be there
ScheduleKind default_schedule();                     // 1f1b

}  // namespace stepcast
