// SPDX-License-Identifier: Apache-2.0
// A process group as one of its ranks sees it. Collectives take fp32 elements in host memory and
// are called by all members in the same order; ranks are those of the group.
//
// A collective on `count` elements over n ranks cuts them into n slices, slice r = elements
// [r*count/n, (r+1)*count/n): no padding, sizes differ by one at most.
//
// comm/mpi_communicator.h makes those of processes; tests/comm makes some of threads, and holds the
// contract that all of them pass.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace stepcast {

// A rank is gone, silent beyond the time limit, or the library failed. Thrown by any operation.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Reduction { kSum, kMaximum };

// An operation under way. ProgressDriver is made inside test() and wait() of any request of the
// group's process, on the calling thread. The buffers belong to the operation until it has ended.
// One request is used by one thread at a time; different requests may be driven by different
// threads.
class Request {
 public:
  virtual ~Request() = default;
  virtual bool test() = 0;  // true once it has ended
  virtual void wait() = 0;  // sleeps between polls: a waiting rank leaves the core to others
  // Grows with each of its messages that has begun or ended. Whoever polls may sleep while it does
  // not grow.
  virtual std::int64_t moves() const = 0;
};

struct Slice {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
Slice slice_of(std::int64_t count, int ranks, int rank);

// Counts what this rank has sent through one communicator itself; its groups count for themselves.
struct CommCounters {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual CommCounters counters() const = 0;

  // An operation that somebody waits for throws when it has made no progress for this long. The
  // limit holds for every communicator of this rank's world; it is 60 s unless set.
  virtual void set_time_limit(std::chrono::milliseconds limit) = 0;

  // A group of `ranks` of this one, in that order; called by exactly its members. `tag`
  // distinguishes groups with common members that are made at the same time.
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& ranks, int tag) = 0;

  using Pending = std::unique_ptr<Request>;
  // Works in place. The order of additions is fixed: same inputs, same bits on every rank and run.
  // The maximum of anything and NaN is NaN.
  virtual Pending start_all_reduce(std::span<float> data, Reduction reduction) = 0;
  // Each rank's slice is at its place in `data` before, all slices are afterwards.
  virtual Pending start_all_gather(std::span<float> data) = 0;
  // Sums; afterwards the rank's own slice of `data` is reduced, the rest is undefined.
  virtual Pending start_reduce_scatter(std::span<float> data) = 0;
  virtual Pending start_broadcast(std::span<float> data, int root) = 0;
  // Slice r of `send` goes to rank r; `receive` gets as many elements, slice r from rank r. Counts
  // divide by size().
  virtual Pending start_all_to_all(std::span<const float> send, std::span<float> receive) = 0;
  // Messages between two ranks with one tag keep their order.
  virtual Pending start_send(std::span<const float> data, int to, std::int64_t tag) = 0;
  virtual Pending start_receive(std::span<float> data, int from, std::int64_t tag) = 0;
  virtual void barrier() = 0;

  void all_reduce(std::span<float> data, Reduction reduction = Reduction::kSum) {
    start_all_reduce(data, reduction)->wait();
  }
  void all_gather(std::span<float> data) { start_all_gather(data)->wait(); }
  void reduce_scatter(std::span<float> data) { start_reduce_scatter(data)->wait(); }
  void broadcast(std::span<float> data, int root) { start_broadcast(data, root)->wait(); }
  void all_to_all(std::span<const float> send, std::span<float> receive) {
    start_all_to_all(send, receive)->wait();
  }
  void send(std::span<const float> data, int to, std::int64_t tag) {
    start_send(data, to, tag)->wait();
  }
  void receive(std::span<float> data, int from, std::int64_t tag) {
    start_receive(data, from, tag)->wait();
  }
};

}  // namespace stepcast
