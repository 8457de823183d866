// SPDX-License-Identifier: Apache-2.0
// Real buffers in a device's memory with accounting: what is alive, by category, and the largest
// sum so far.
#pragma once

#include <memory>
#include <mutex>

#include "execute/device.h"

namespace stepcast {

class MemoryLedger {
 public:
  void add(MemoryCategory category, ByteCount bytes);
  void remove(MemoryCategory category, ByteCount bytes) { add(category, -bytes); }

  MemoryParts now() const;
  MemoryParts at_peak() const;

 private:
  mutable std::mutex mutex_;
  MemoryParts now_{}, at_peak_{};
};

// One buffer. It may be freed by any thread.
class Storage {
 public:
  Storage(Device& device, MemoryLedger& ledger, MemoryCategory category, ByteCount bytes,
          DataType type, Stream stream, bool counted);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Array array() const { return {data_, type_}; }
  ByteCount size() const { return bytes_; }
  // No longer counted: the program is done with it, a transfer still reads it.
  void leave_ledger();

 private:
  Device& device_;
  MemoryLedger& ledger_;
  MemoryCategory category_;
  ByteCount bytes_;
  DataType type_;
  bool counted_;
  void* data_;
};

using Tensor = std::shared_ptr<Storage>;

// What makes tensors.
struct Memory {
  explicit Memory(Device& on) : device(on) {}

  Tensor make(MemoryCategory category, std::int64_t elements, DataType type,
              Stream stream = Stream::kCompute) {
    return std::make_shared<Storage>(device, ledger, category, elements * size_of(type), type,
                                     stream, true);
  }
  Tensor make_uncounted(std::int64_t elements, DataType type,  // the caller keeps the ledger
                        Stream stream = Stream::kCompute) {
    return std::make_shared<Storage>(device, ledger, MemoryCategory::kBuffers,
                                     elements * size_of(type), type, stream, false);
  }

  Device& device;
  MemoryLedger ledger;
};

}  // namespace stepcast
