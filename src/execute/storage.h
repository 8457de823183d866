// SPDX-License-Identifier: Apache-2.0
// Real buffers with accounting: what is alive, by category, and the largest sum so far. Freed
// blocks are kept and handed out again by exact size: a step asks for the same sizes over and over,
// and fresh pages would cost page faults that no step after the first has.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "program/program.h"

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

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  std::byte* take(std::size_t bytes);  // zeroes when new
  void give(std::byte* block, std::size_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
};

// One buffer. It may be freed by any thread.
class Storage {
 public:
  Storage(Arena& arena, MemoryLedger& ledger, MemoryCategory category, ByteCount bytes,
          bool counted = true);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  float* floats() const { return reinterpret_cast<float*>(data_); }
  std::int64_t* integers() const { return reinterpret_cast<std::int64_t*>(data_); }
  ByteCount size() const { return bytes_; }
  // No longer counted: the program is done with it, a transfer still reads it.
  void leave_ledger();

 private:
  Arena& arena_;
  MemoryLedger& ledger_;
  MemoryCategory category_;
  ByteCount bytes_;
  bool counted_;
  std::byte* data_;
};

using Tensor = std::shared_ptr<Storage>;

// What makes tensors.
struct Memory {
  Arena arena;
  MemoryLedger ledger;
  Tensor make(MemoryCategory category, ByteCount bytes) {
    return std::make_shared<Storage>(arena, ledger, category, bytes);
  }
  Tensor make_uncounted(ByteCount bytes) {  // the caller keeps the ledger
    return std::make_shared<Storage>(arena, ledger, MemoryCategory::kBuffers, bytes, false);
  }
};

}  // namespace stepcast
