// SPDX-License-Identifier: Apache-2.0
// The next moment of each task, earliest first: a 4-ary heap with the place of every task, so that
// a change of rate moves an entry instead of leaving a stale one behind. Ties come out in any
// order; the engine treats one instant as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepcast::sim {

class EventQueue {
 public:
  explicit EventQueue(std::size_t tasks) : place_(tasks, kAbsent) {}

  bool empty() const { return heap_.empty(); }
  std::int64_t next_time() const { return heap_.front().time_ps; }

  // Inserts the task, or moves it to another time.
  void schedule(std::int32_t task, std::int64_t time_ps) {
    std::size_t place = 0;
    if (const std::int32_t known = place_[at(task)]; known == kAbsent) {
      place = heap_.size();
      heap_.emplace_back();
    } else {
      place = at(known);
    }
    place = sift_up(place, time_ps);
    settle({time_ps, task}, place);
  }

  void cancel(std::int32_t task) {
    const std::int32_t place = place_[at(task)];
    if (place == kAbsent) return;
    place_[at(task)] = kAbsent;
    fill_gap(at(place));
  }

  std::int32_t pop() {
    const std::int32_t task = heap_.front().task;
    place_[at(task)] = kAbsent;
    fill_gap(0);
    return task;
  }

 private:
  struct Entry {
    std::int64_t time_ps = 0;
    std::int32_t task = 0;
  };
  static constexpr std::int32_t kAbsent = -1;
  static constexpr std::size_t kArity = 4;

  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

  void put(const Entry& entry, std::size_t place) {
    heap_[place] = entry;
    place_[at(entry.task)] = static_cast<std::int32_t>(place);
  }

  void fill_gap(std::size_t place) {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place < heap_.size()) settle(last, sift_up(place, last.time_ps));
  }

  // Moves later ancestors down; the place where an entry of this time may go so far.
  std::size_t sift_up(std::size_t place, std::int64_t time_ps) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / kArity;
      if (heap_[parent].time_ps <= time_ps) break;
      put(heap_[parent], place);
      place = parent;
    }
    return place;
  }

  // Moves earlier descendants up and puts the entry below them.
  void settle(const Entry& entry, std::size_t place) {
    for (;;) {
      const std::size_t first = place * kArity + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = std::min(first + kArity, heap_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].time_ps < heap_[least].time_ps) least = child;
      }
      if (heap_[least].time_ps >= entry.time_ps) break;
      put(heap_[least], place);
      place = least;
    }
    put(entry, place);
  }

  std::vector<Entry> heap_;
  std::vector<std::int32_t> place_;
};

}  // namespace stepcast::sim
