// SPDX-License-Identifier: Apache-2.0
// Programmer errors. Never reachable from user input: that is what Result is for.
#pragma once

namespace stepcast {
[[noreturn]] void assertion_failed(const char* condition, const char* why, const char* file,
                                   int line);
}

// Checked in every build: keep the condition cheap.
#define STEPCAST_ASSERT(condition, why) \
  ((condition) ? void(0) : ::stepcast::assertion_failed(#condition, why, __FILE__, __LINE__))

#ifdef NDEBUG
#define STEPCAST_DASSERT(condition, why) void(0)
#else
#define STEPCAST_DASSERT(condition, why) STEPCAST_ASSERT(condition, why)
#endif
