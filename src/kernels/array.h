// SPDX-License-Identifier: Apache-2.0
// A place in the memory of a device, and what kind of numbers lie there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data_type.h"

namespace stepcast {

struct Array {
  void* data = nullptr;
  DataType type = DataType::kFp32;

  explicit operator bool() const { return data != nullptr; }
  // Returns the array from its element `begin` on.
  Array from(std::int64_t begin) const {
    return {static_cast<std::byte*>(data) + begin * size_of(type), type};
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace stepcast
