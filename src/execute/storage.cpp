// SPDX-License-Identifier: Apache-2.0
#include "execute/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace stepcast {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line

}  // namespace

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

Arena::~Arena() {
  for (const auto& [bytes, blocks] : free_) {
    for (std::byte* block : blocks) ::operator delete(block, kAlignment);
  }
}

std::byte* Arena::take(std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = free_.find(bytes);
    if (found != free_.end() && !found->second.empty()) {
      std::byte* block = found->second.back();
      found->second.pop_back();
      return block;
    }
  }
  auto* block =
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment));
  std::memset(block, 0, bytes);
  return block;
}

void Arena::give(std::byte* block, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  free_[bytes].push_back(block);
}

Storage::Storage(Arena& arena, MemoryLedger& ledger, MemoryCategory category, ByteCount bytes,
                 bool counted)
    : arena_(arena),
      ledger_(ledger),
      category_(category),
      bytes_(bytes),
      counted_(counted),
      data_(arena.take(static_cast<std::size_t>(bytes))) {
  if (counted_) ledger_.add(category_, bytes_);
}

Storage::~Storage() {
  leave_ledger();
  arena_.give(data_, static_cast<std::size_t>(bytes_));
}

void Storage::leave_ledger() {
  if (!counted_) return;
  counted_ = false;
  ledger_.remove(category_, bytes_);
}

}  // namespace stepcast
