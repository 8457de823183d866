// SPDX-License-Identifier: Apache-2.0
// Runs a row of jobs on several threads. Each job writes to its own place, so results depend
// neither on the number of threads nor on their order.
#pragma once

#include <cstddef>
#include <functional>

namespace stepcast {

// `job(worker, index)` for each index below `count`; workers are numbered from 0 to threads - 1.
// Indices are taken in order. When `stop` returns true, the rest is not started. The scopes of
// core/work_limits.h hold for all threads.
void run_in_parallel(int threads, std::size_t count,
                     const std::function<void(std::size_t worker, std::size_t index)>& job,
                     const std::function<bool()>& stop = {});

}  // namespace stepcast
