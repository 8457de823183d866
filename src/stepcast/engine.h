// SPDX-License-Identifier: Apache-2.0
// The discrete-event engine alone: tasks on streams, with dependencies and shared resources. It
// knows no transformer, so anything can be replayed with it.
//
// Example: two transfers of a second each share a link, so both end after two.
//   using namespace stepcast::sim;
//   Workload workload;
//   const ResourceId link = workload.add_resource(1.0);
//   for (int i = 0; i < 2; ++i) {
//     const Use use{link, 1.0};
//     const MemberSpec member{.stream = workload.add_stream()};
//     workload.add_task({.members = {&member, 1}, .work = 1, .rate_bound = 1, .uses = {&use, 1}});
//   }
//   const auto replayed = replay(workload);
//   if (!replayed) return replayed.error();
//   if (replayed->end.ps != 2'000'000'000'000) std::abort();
#pragma once

#include "sim/engine.h"
#include "sim/workload.h"
