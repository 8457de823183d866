// SPDX-License-Identifier: Apache-2.0
// Real buffers in a device's memory with accounting: what is alive, by category, and the largest
// sum so far.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "execute/device.h"
#include "execute/kernel_arrays.h"
#include "operation/buffer.h"
#include "operation/memory_parts.h"

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
  Storage(Allocator& allocator, MemoryLedger& ledger, MemoryCategory category, ByteCount bytes,
          DataType type, Stream stream, bool counted);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Array array() const { return {data_, type_}; }
  ByteCount size() const { return bytes_; }
  MemoryCategory category() const { return category_; }
  // Says what the numbers of a copy in fp8 stand for.
  void stand_for(Fp8Format format, std::shared_ptr<Storage> factor);
  void stand_for_the_same(const Storage& other);
  ProductOperand operand() const;
  // No longer counted: the program is done with it, a transfer still reads it.
  void leave_ledger();

 private:
  Allocator& allocator_;
  MemoryLedger& ledger_;
  MemoryCategory category_;
  ByteCount bytes_;
  DataType type_;
  bool counted_;
  void* data_;
  Fp8Format format_{};
  std::shared_ptr<Storage> factor_;
};

using Tensor = std::shared_ptr<Storage>;

// Memory of a rank that runs alone, for what other ranks would send. It holds plain numbers from
// the start. Other contents would soon be NaNs, with which a GPU draws less power and runs faster.
class StandIns final : public Allocator {
 public:
  explicit StandIns(Device& device) : device_(device) {}
  ~StandIns() override;
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  void* allocate(std::size_t bytes, Stream stream) override;
  void release(void* data, std::size_t bytes) noexcept override { free_.emplace(bytes, data); }
  void fill_if_new(Array array, std::int64_t elements);  // what was allocated last

 private:
  Device& device_;
  std::multimap<std::size_t, void*> free_;
  bool is_new_ = false;
};

// Host memory by exact size, kept for the next copy of as much: to lock it in its place takes long.
class HostArena final : public Allocator {
 public:
  explicit HostArena(Device& device) : device_(device) {}
  ~HostArena() override;
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  void* allocate(std::size_t bytes, Stream stream) override;
  void release(void* data, std::size_t bytes) noexcept override;

 private:
  Device& device_;
  std::mutex mutex_;
  std::multimap<std::size_t, void*> free_;
};

// Makes tensors. Those that another stream than the computing one writes first come from others.
class Memory {
 public:
  // `alone`: one of several ranks, what others would send is a stand-in.
  Memory(Device& on, bool alone) : device(on), stand_ins_(on), host_(on), alone_(alone) {}

  Tensor make(MemoryCategory category, std::int64_t elements, DataType type,
              Stream stream = Stream::kCompute) {
    return make(category, elements, type, stream, stream != Stream::kCompute, true);
  }
  Tensor make_uncounted(std::int64_t elements, DataType type,  // the caller keeps the ledger
                        Stream stream = Stream::kCompute) {
    return make(MemoryCategory::kBuffers, elements, type, stream, stream != Stream::kCompute,
                false);
  }
  // Makes a tensor for an operation of a block on `stream`. What a gather writes comes from others;
  // numbers that stand in for it are written by the computing stream.
  Tensor make_in_block(const Buffer& buffer, Stream stream, bool gathers) {
    const Stream first = gathers && alone_ ? Stream::kCompute : stream;
    return make(buffer.category, buffer.elements, buffer.type, first, gathers, true);
  }
  // Makes one for a single operation on `stream`, and for nothing that others send.
  Tensor make_temporary(std::int64_t elements, DataType type, Stream stream) {
    return make(MemoryCategory::kBuffers, elements, type, stream, false, false);
  }

  // Room for a tensor that is copied out, and for one that comes back.
  Tensor make_on_host(MemoryCategory category, std::int64_t elements, DataType type);
  Tensor make_on_host(const Storage& like);
  Tensor make_from_host(const Storage& like);

  bool is_alone() const { return alone_; }  // what others would send is a stand-in

  Device& device;
  MemoryLedger ledger;
  MemoryLedger host_ledger;  // of what lies in host memory

 private:
  Tensor make(MemoryCategory category, std::int64_t elements, DataType type, Stream stream,
              bool from_others, bool counted);

  StandIns stand_ins_;
  HostArena host_;
  bool alone_;
};

}  // namespace stepcast
