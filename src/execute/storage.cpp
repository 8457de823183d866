// SPDX-License-Identifier: Apache-2.0
#include "execute/storage.h"

namespace stepcast {

void MemoryLedger::add(MemoryCategory category, ByteCount bytes) {
  const std::scoped_lock lock(mutex_);
  now_[static_cast<std::size_t>(category)] += bytes;
  if (bytes > 0 && total(now_) > total(at_peak_)) at_peak_ = now_;
}

MemoryParts MemoryLedger::now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

MemoryParts MemoryLedger::at_peak() const {
  const std::scoped_lock lock(mutex_);
  return at_peak_;
}

Storage::Storage(Allocator& allocator, MemoryLedger& ledger, MemoryCategory category,
                 ByteCount bytes, DataType type, Stream stream, bool counted)
    : allocator_(allocator),
      ledger_(ledger),
      category_(category),
      bytes_(bytes),
      type_(type),
      counted_(counted),
      data_(allocator.allocate(static_cast<std::size_t>(bytes), stream)) {
  if (counted_) ledger_.add(category_, bytes_);
}

Storage::~Storage() {
  leave_ledger();
  allocator_.release(data_, static_cast<std::size_t>(bytes_));
}

void Storage::stand_for(Fp8Format format, std::shared_ptr<Storage> factor) {
  format_ = format;
  factor_ = std::move(factor);
}

void Storage::stand_for_the_same(const Storage& other) { stand_for(other.format_, other.factor_); }

ProductOperand Storage::operand() const {
  const float* const factor = factor_ ? factor_->array().as<const float>() : nullptr;
  return {array(), {format_, factor}};
}

void Storage::leave_ledger() {
  if (!counted_) return;
  counted_ = false;
  ledger_.remove(category_, bytes_);
}

StandIns::~StandIns() {
  for (const auto& [bytes, data] : free_) device_.release(data, bytes);
}

void* StandIns::allocate(std::size_t bytes, Stream stream) {
  const auto found = free_.find(bytes);
  is_new_ = found == free_.end();
  if (is_new_) return device_.allocate(bytes, stream);
  void* data = found->second;
  free_.erase(found);
  return data;
}

void StandIns::fill_if_new(Array array, std::int64_t elements) {
  if (!is_new_) return;
  if (array.type == DataType::kInt64) {  // counts, not numbers
    device_.zero(array.data, static_cast<std::size_t>(elements * size_of(array.type)));
  } else {
    device_.kernels().noise(array, elements);
  }
}

HostArena::~HostArena() {
  for (const auto& [bytes, data] : free_) device_.release_host(data);
}

void* HostArena::allocate(std::size_t bytes, Stream) {
  const std::scoped_lock lock(mutex_);
  const auto found = free_.find(bytes);
  if (found == free_.end()) return device_.allocate_host(bytes);
  void* data = found->second;
  free_.erase(found);
  return data;
}

void HostArena::release(void* data, std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  free_.emplace(bytes, data);
}

Tensor Memory::make_on_host(MemoryCategory category, std::int64_t elements, DataType type) {
  return std::make_shared<Storage>(host_, host_ledger, category, elements * size_of(type), type,
                                   Stream::kCopyOut, true);
}

Tensor Memory::make_on_host(const Storage& like) {
  const DataType type = like.array().type;
  const Tensor out = make_on_host(like.category(), like.size() / size_of(type), type);
  out->stand_for_the_same(like);
  return out;
}

Tensor Memory::make_from_host(const Storage& like) {
  const DataType type = like.array().type;
  const Tensor out =
      make(like.category(), like.size() / size_of(type), type, Stream::kCopyIn, false, true);
  out->stand_for_the_same(like);
  return out;
}

Tensor Memory::make(MemoryCategory category, std::int64_t elements, DataType type, Stream stream,
                    bool from_others, bool counted) {
  const bool stands_in = alone_ && from_others;
  Allocator& from = stands_in ? static_cast<Allocator&>(stand_ins_) : device;
  auto tensor = std::make_shared<Storage>(from, ledger, category, elements * size_of(type), type,
                                          stream, counted);
  if (stands_in) stand_ins_.fill_if_new(tensor->array(), elements);
  return tensor;
}

}  // namespace stepcast
