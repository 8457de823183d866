// SPDX-License-Identifier: Apache-2.0
#include "core/packed_json.h"

#include <cstring>
#include <string>
#include <utility>

#include "core/assert.h"
#include "core/json_tree.h"

namespace stepcast {
namespace {

class Unpacking {
 public:
  explicit Unpacking(std::string_view packed) : rest_(packed) {}

  bool is_over() const { return rest_.empty(); }

  SortedJson value() {
    switch (number<PackedTag>()) {
      case PackedTag::kNull:
        return {};
      case PackedTag::kTrue:
        return true;
      case PackedTag::kFalse:
        return false;
      case PackedTag::kInteger:
        return number<std::int64_t>();
      case PackedTag::kUnsigned:
        return number<std::uint64_t>();
      case PackedTag::kSmall:
        return std::uint64_t{number<PackedCount>()};
      case PackedTag::kFloat:
        return number<double>();
      case PackedTag::kText:
        return text();
      case PackedTag::kArray:
        return array();
      case PackedTag::kObject:
        return object();
    }
    STEPCAST_ASSERT(false, "a tag that the packer writes");
  }

 private:
  std::string_view bytes(std::size_t count) {
    STEPCAST_ASSERT(count <= rest_.size(), "what the packer wrote, whole");
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }
  template <class T>
  T number() {
    T out;
    std::memcpy(&out, bytes(sizeof(T)).data(), sizeof(T));
    return out;
  }
  std::string text() { return std::string(bytes(number<PackedCount>())); }

  SortedJson array() {
    SortedJson::Array elements(number<PackedCount>());
    for (SortedJson& element : elements) element = value();
    return SortedJson::array_of(std::move(elements));
  }
  SortedJson object() {
    SortedJson::Members members(number<PackedCount>());
    for (auto& [key, held] : members) {
      key = text();
      held = value();
    }
    return SortedJson::object_of(std::move(members));
  }

  std::string_view rest_;
};

}  // namespace

SortedJson unpack_json(std::string_view packed) {
  Unpacking unpacking(packed);
  SortedJson out = unpacking.value();
  STEPCAST_ASSERT(unpacking.is_over(), "one document");
  return out;
}

}  // namespace stepcast
