// SPDX-License-Identifier: Apache-2.0
#include "execute/stream_engine.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "comm/idle.h"

namespace stepcast {
namespace {

// A thread whose cores are shared by ranks asks to run soon after it wakes rather than for long.
// Otherwise a transfer's next message would wait for the end of another rank's slice (3 ms). Linux
// takes the runtime of an ordinary thread as its slice from 6.12 on; elsewhere nothing changes.
void ask_for_short_slices() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  attributes.size = sizeof(attributes);
  attributes.policy = SCHED_OTHER;
  attributes.nice = ::getpriority(PRIO_PROCESS, 0);
  attributes.runtime_ns = 100'000;  // the shortest that Linux grants
  ::syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace

StreamEngine::StreamEngine() : queues_(kStreams), thread_([this] { serve(); }) {}

void StreamEngine::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (auto& queue : queues_) queue.clear();
}

EventHandle StreamEngine::post(Stream stream, Transfer transfer) {
  auto event = std::make_shared<Event>();
  {
    const std::scoped_lock lock(mutex_);
    queues_[static_cast<std::size_t>(stream)].push_back(
        {std::move(transfer), event, nullptr, 0, false});
  }
  changed_.notify_all();
  return event;
}

void StreamEngine::end(const EventHandle& event) {
  {
    const std::scoped_lock lock(mutex_);
    event->end = Clock::now();
    event->ended = true;
  }
  changed_.notify_all();
}

bool StreamEngine::has_ended(const EventHandle& event) {
  const std::scoped_lock lock(mutex_);
  if (!event->ended && error_) std::rethrow_exception(error_);
  return event->ended;
}

void StreamEngine::wait(const EventHandle& event) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return event->ended || error_; });
  if (!event->ended) std::rethrow_exception(error_);
}

void StreamEngine::wait(const std::vector<EventHandle>& events) {
  for (const EventHandle& event : events) wait(event);
}

bool StreamEngine::can_start(const Posted& posted) const {
  return std::all_of(posted.transfer.waits.begin(), posted.transfer.waits.end(),
                     [](const EventHandle& event) { return event->ended; });
}

// Starts what is next of its traffic. True when all has ended.
bool StreamEngine::run_on(Posted& posted) {
  while (true) {
    if (posted.request != nullptr && !posted.request->test()) return false;
    posted.request.reset();
    if (posted.begun == posted.transfer.starts.size()) return true;
    posted.request = posted.transfer.starts[posted.begun++](nullptr);
  }
}

// One look at the head of a stream. True when something moved on. Transfers run unlocked: only
// this thread touches a queue's head.
bool StreamEngine::advance(std::unique_lock<std::mutex>& lock, std::deque<Posted>& queue) {
  if (queue.empty() || (!queue.front().started && !can_start(queue.front()))) return false;
  Posted& head = queue.front();
  lock.unlock();
  const bool starts = !head.started;
  if (starts) {
    head.started = true;
    head.event->start = Clock::now();
  }
  const bool done = run_on(head);
  if (done && head.transfer.finish) head.transfer.finish();
  lock.lock();
  if (!done) return starts;
  head.event->end = Clock::now();
  head.event->ended = true;
  queue.pop_front();
  changed_.notify_all();
  return true;
}

void StreamEngine::serve() {
  ask_for_short_slices();
  std::unique_lock lock(mutex_);
  Idle idle(FirstPauses::kNap);
  std::int64_t moves = 0;
  try {
    while (!stopping_) {
      bool moved = false, under_way = false;
      const std::int64_t before = moves;
      moves = 0;
      for (std::deque<Posted>& queue : queues_) {
        moved = advance(lock, queue) || moved;
        if (queue.empty() || !queue.front().started) continue;
        under_way = true;
        if (queue.front().request != nullptr) moves += queue.front().request->moves();
      }
      if (moved || moves != before) idle.restart();
      if (moved) continue;
      if (under_way) {
        lock.unlock();
        idle.pause();
        lock.lock();
      } else if (!stopping_) {
        changed_.wait(lock);
      }
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace stepcast
