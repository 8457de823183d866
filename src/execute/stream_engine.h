// SPDX-License-Identifier: Apache-2.0
// The streams of a rank beside the computing one: a thread that starts transfers in the order in
// which they were posted on their stream, each after the events that it waits for, and drives all
// that are under way.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "execute/device.h"

namespace stepcast {

class StreamEngine {
 public:
  StreamEngine();
  ~StreamEngine() { stop(); }
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;

  void stop();  // drops what has not ended
  EventHandle post(Stream stream, Transfer transfer);
  void end(const EventHandle& event);        // of work on the calling thread
  bool has_ended(const EventHandle& event);  // throws what a transfer has thrown
  void wait(const EventHandle& event);       // throws what a transfer has thrown
  void wait(const std::vector<EventHandle>& events);

 private:
  struct Posted {
    Transfer transfer;
    EventHandle event;
    Pending request;
    std::size_t begun = 0;  // so many of its starts have been made
    bool started = false;
  };
  void serve();
  bool can_start(const Posted& posted) const;
  static bool run_on(Posted& posted);
  bool advance(std::unique_lock<std::mutex>& lock, std::deque<Posted>& queue);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Posted>> queues_;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace stepcast
