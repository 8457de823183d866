// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace stepcast {

// kTf32 is what products make of fp32 operands on their way into the matrix units: nothing is
// stored or sent so.
enum class DataType { kFp32, kBf16, kFp16, kFp8, kInt64, kInt8, kTf32, kFp4 };

// Training may have one of these, and a device its peak in it.
inline constexpr std::array kPrecisions = {DataType::kBf16, DataType::kFp16, DataType::kFp32,
                                           DataType::kFp8,  DataType::kTf32, DataType::kFp4};

// Only products and attention read these: copies of a wider tensor, with scales beside them
// (layout/fp8_recipe.h).
constexpr bool is_scaled(DataType type) { return type == DataType::kFp8 || type == DataType::kFp4; }

// Bytes of one piece of storage. fp4 comes two to a byte: an array of it counts bytes.
constexpr std::int64_t size_of(DataType type) {
  switch (type) {
    case DataType::kFp32:
    case DataType::kTf32:
      return 4;
    case DataType::kBf16:
    case DataType::kFp16:
      return 2;
    case DataType::kFp8:
    case DataType::kInt8:
    case DataType::kFp4:
      return 1;
    case DataType::kInt64:
      return 8;
  }
  return 0;
}

// Bytes of one number.
constexpr double width_of(DataType type) {
  return type == DataType::kFp4 ? 0.5 : static_cast<double>(size_of(type));
}

constexpr const char* name_of(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return "fp32";
    case DataType::kTf32:
      return "tf32";
    case DataType::kBf16:
      return "bf16";
    case DataType::kFp16:
      return "fp16";
    case DataType::kFp8:
      return "fp8";
    case DataType::kInt64:
      return "int64";
    case DataType::kInt8:
      return "int8";
    case DataType::kFp4:
      return "fp4";
  }
  return "";
}

}  // namespace stepcast
