// SPDX-License-Identifier: Apache-2.0
// Work that takes long runs on a thread of its own, without the interpreter's lock. The caller's
// thread waits, lets other Python threads run, looks for Ctrl-C and calls the caller back.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace stepcast::python {

// The newest of what one thread tells another.
template <class Value>
class Told {
 public:
  void put(const Value& value) {
    const std::lock_guard lock(mutex_);
    value_ = value;
  }
  std::optional<Value> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<Value> value_;
};

// Runs `work`, which asks its argument whether to stop. While it runs, `tell` is called now and
// then with the lock, and ends it by false. A signal's handler or a `tell` that raises ends it too,
// and its exception goes on.
void run_interruptible(const std::function<void(const std::function<bool()>& stop)>& work,
                       const std::function<bool()>& tell);

template <class Work>
auto interruptible(const Work& work, const std::function<bool()>& tell = {}) {
  std::optional<decltype(work(std::function<bool()>()))> out;
  run_interruptible([&](const std::function<bool()>& stop) { out.emplace(work(stop)); }, tell);
  return std::move(*out);
}

}  // namespace stepcast::python
