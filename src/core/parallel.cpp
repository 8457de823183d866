// SPDX-License-Identifier: Apache-2.0
#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/work_limits.h"

namespace stepcast {

void run_in_parallel(int threads, std::size_t count,
                     const std::function<void(std::size_t, std::size_t)>& job,
                     const std::function<bool()>& stop) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;
  const CarriedLimits limits;
  const auto work = [&](std::size_t worker) {
    try {
      for (std::size_t i = next++; i < count && !(stop && stop()); i = next++) {
        end_if_stopped();
        job(worker, i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
      next = count;
    }
  };
  const std::size_t workers =
      std::min(static_cast<std::size_t>(std::max(1, threads)), std::max<std::size_t>(count, 1));
  {
    std::vector<std::jthread> others;
    for (std::size_t worker = 1; worker < workers; ++worker) {
      try {
        others.emplace_back([&, worker] {
          limits.enter();
          work(worker);
        });
      } catch (const std::system_error&) {
        break;  // the machine gives no more; those that there are do all jobs
      }
    }
    work(0);
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace stepcast
