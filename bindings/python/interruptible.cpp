// SPDX-License-Identifier: Apache-2.0
#include "interruptible.h"

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>

namespace stepcast::python {

namespace py = pybind11;

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};  // short for a hand on a keyboard

// With the interpreter's lock: throws what a signal's handler or `tell` raises.
bool goes_on(const std::function<bool()>& tell) {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  return !tell || tell();
}

}  // namespace

void run_interruptible(const std::function<void(const std::function<bool()>& stop)>& work,
                       const std::function<bool()>& tell) {
  std::atomic<bool> stopped = false;
  std::exception_ptr raised;
  {
    const py::gil_scoped_release unlocked;
    auto done = std::async(std::launch::async, [&] { work([&] { return stopped.load(); }); });
    while (done.wait_for(kBetweenLooks) != std::future_status::ready) {
      const py::gil_scoped_acquire locked;
      if (stopped) continue;
      try {
        if (!goes_on(tell)) stopped = true;
      } catch (...) {
        raised = std::current_exception();
        stopped = true;
      }
    }
    done.get();
  }
  if (raised) std::rethrow_exception(raised);
  goes_on(tell);  // the last that was told
}

}  // namespace stepcast::python
