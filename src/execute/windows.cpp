// SPDX-License-Identifier: Apache-2.0
#include "execute/windows.h"

#include <algorithm>
#include <utility>

#include "core/assert.h"

namespace stepcast {

Windows::Window* Windows::find(std::int64_t element) {
  return const_cast<Window*>(std::as_const(*this).find(element));
}

const Windows::Window* Windows::find(std::int64_t element) const {
  const auto found = std::find_if(windows_.begin(), windows_.end(), [&](const Window& window) {
    return element >= window.unit.begin && element < window.unit.end;
  });
  return found == windows_.end() ? nullptr : &*found;
}

bool Windows::has(ElementRange range) const { return find(range.begin) != nullptr; }

void Windows::open(ElementRange range, ElementRange unit) {
  Window* window = find(range.begin);
  if (window == nullptr) {
    Tensor data = memory_->make_uncounted(unit.size(), type_, stream_);
    windows_.push_back({unit, std::move(data), 0, 0, {}});
    window = &windows_.back();
  }
  window->opened += range.size();
  const bool whole = window->opened >= window->unit.size();
  const ByteCount bytes = window->opened * (whole ? bytes_ : size_of(type_));
  memory_->ledger.add(MemoryCategory::kBuffers, bytes - window->counted);
  window->counted = bytes;
}

void Windows::close(ElementRange range) {
  std::erase_if(windows_, [&](const Window& window) {
    if (window.unit.begin < range.begin || window.unit.end > range.end) return false;
    memory_->ledger.remove(MemoryCategory::kBuffers, window.counted);
    return true;
  });
}

Array Windows::at(std::int64_t element) const {
  const Window* window = find(element);
  STEPCAST_ASSERT(window != nullptr, "the element's unit is open");
  return window->data->array().from(element - window->unit.begin);
}

bool Windows::is_fresh(ElementRange parameter) {
  Window* window = find(parameter.begin);
  STEPCAST_ASSERT(window != nullptr, "the parameter's unit is open");
  auto& written = window->written;
  if (std::find(written.begin(), written.end(), parameter.begin) != written.end()) return false;
  written.push_back(parameter.begin);
  return true;
}

}  // namespace stepcast
