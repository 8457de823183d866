// SPDX-License-Identifier: Apache-2.0
// The streams of a rank beside the computing one: a thread that starts transfers in the order in
// which they were posted on their stream, each after the events that it waits for, and drives all
// that are under way.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "program/program.h"

namespace stepcast {

using Clock = std::chrono::steady_clock;

// Of one instruction: when it started and ended.
struct Event {
  bool ended = false;
  Clock::time_point start, end;
};
using EventHandle = std::shared_ptr<Event>;

struct Transfer {
  std::vector<EventHandle> waits;
  std::function<std::unique_ptr<Request>()> start;  // null result: nothing to do
  std::function<void()> finish;                     // may be empty; before the event ends
};

class StreamEngine {
 public:
  StreamEngine();
  ~StreamEngine();  // drops what has not started
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;

  EventHandle post(Stream stream, Transfer transfer);
  void end(const EventHandle& event);        // of work on the calling thread
  bool has_ended(const EventHandle& event);  // throws what a transfer has thrown
  void wait(const EventHandle& event);       // throws what a transfer has thrown
  void wait(const std::vector<EventHandle>& events);

 private:
  struct Posted {
    Transfer transfer;
    EventHandle event;
    std::unique_ptr<Request> request;
    bool started = false;
  };
  void serve();
  bool can_start(const Posted& posted) const;
  bool advance(std::unique_lock<std::mutex>& lock, std::deque<Posted>& queue);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Posted>> queues_;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace stepcast
