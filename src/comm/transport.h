// SPDX-License-Identifier: Apache-2.0
// Messages between the processes of a world: what collectives are made of. "Process" is a rank of
// the world here; in a thread world it is a thread.
//
// A channel runs one way between two processes and keeps the order of its messages. Channels are
// told apart by a context (the name of a group and purpose, the same on both sides) and a tag.
// Nothing here blocks; any thread may call, a transfer is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace stepcast {

// Stands for a context's name in this process only.
enum class ContextId : std::uint32_t {};

struct Channel {
  int peer;  // the other end
  ContextId context;
  std::int64_t tag;

  bool operator==(const Channel&) const = default;
};

struct ChannelHash {
  std::size_t operator()(const Channel& channel) const;
};

// A message under way. Destroyed before it has ended it is withdrawn, which MPI does not do for
// sends: it may still read their buffers then (see MpiTransport::close).
class MessageTransfer {
 public:
  virtual ~MessageTransfer() = default;
  // True once the buffer is free again. Throws CommunicationError.
  virtual bool poll() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int process() const = 0;
  virtual int processes() const = 0;
  virtual ContextId context(const std::string& name) = 0;
  virtual std::unique_ptr<MessageTransfer> start_send(std::span<const std::byte> data,
                                                      const Channel& to) = 0;
  // The message must have exactly this size.
  virtual std::unique_ptr<MessageTransfer> start_receive(std::span<std::byte> data,
                                                         const Channel& from) = 0;
};

}  // namespace stepcast
