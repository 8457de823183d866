// SPDX-License-Identifier: Apache-2.0
// A process group whose members' data lies in the memory of their devices.
//
// Beside Communicator and not below it, because four of its promises cannot be kept there: spans of
// fp32 in host memory (a device's data has other types, and streams of work before and behind it),
// a stated order of additions (the library's own), messages told apart by tag (the library has
// none: messages between two ranks keep their order), and groups that only their members make
// (splitting takes all ranks). What can be shared is: Request, Reduction, slices,
// CommunicationError and time limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "core/data_type.h"

namespace stepcast {

struct DeviceBuffer {
  void* data = nullptr;
  std::int64_t count = 0;  // elements
  DataType type = DataType::kBf16;
};

using DeviceStream = void*;  // a cudaStream_t; null is the default stream

// Every operation runs on a stream of the group's own, and begins once the work that is on `after`
// so far has run. The host waits for its end through the request, a stream through `hold`.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // An operation that has not ended this long after its start throws, and makes the group unusable
  // for all of its ranks; 60 s unless set.
  virtual void set_time_limit(std::chrono::milliseconds limit) = 0;

  // Called by all ranks at the same place: those of one `color` make a group, in their order here.
  // Null where the color is negative.
  virtual std::unique_ptr<DeviceCommunicator> split(int color) = 0;

  // Until destroyed, operations inside this memory may go without copies. Null where the library
  // has no such thing.
  virtual std::shared_ptr<void> register_memory(void* data, std::int64_t bytes) = 0;

  // Memory from the library, registered in the best way that it has: in a window that lies alike on
  // all ranks, where it offers those. All ranks call this with the same size.
  virtual std::shared_ptr<void> allocate(std::int64_t bytes) = 0;

  // Returns the stream that operations run on, so that callers can put events around them.
  virtual DeviceStream stream() const = 0;

  using Pending = std::unique_ptr<Request>;
  virtual Pending start_all_reduce(DeviceBuffer data, Reduction reduction, DeviceStream after) = 0;
  // Slices as Communicator cuts them, in place.
  virtual Pending start_all_gather(DeviceBuffer data, DeviceStream after) = 0;
  virtual Pending start_reduce_scatter(DeviceBuffer data, DeviceStream after) = 0;
  virtual Pending start_broadcast(DeviceBuffer data, int root, DeviceStream after) = 0;
  virtual Pending start_all_to_all(DeviceBuffer send, DeviceBuffer receive, DeviceStream after) = 0;

  // Messages that begin together. Messages to be sent and received at once belong in one call,
  // because one that waits for its partner keeps later ones waiting.
  struct Message {
    int peer = 0;
    bool sends = false;
    DeviceBuffer data;
    std::int64_t tag = 0;  // for groups that tell messages apart; in others they keep their order
  };
  virtual Pending start_messages(const std::vector<Message>& messages, DeviceStream after) = 0;

  // `stream` goes on once all operations started so far have ended.
  virtual void hold(DeviceStream stream) = 0;
};

}  // namespace stepcast
