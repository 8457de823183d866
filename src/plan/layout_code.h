// SPDX-License-Identifier: Apache-2.0
// A layout as a few numbers, by which sub-results are remembered. A key is the whole code except
// the fields that are known not to matter, so a field that nobody thought of makes a table larger,
// not wrong. Lists that are no dimension (stage_layers) are equal throughout a search and left out.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>

namespace stepcast {

struct Scenario;

enum class Field {
  kTp,
  kCp,
  kCpMethod,
  kEp,
  kEtp,
  kPp,
  kDp,
  kMicroBatch,
  kSchedule,
  kVirtualStages,
  kZero,
  kShardGroup,
  kSequenceParallel,
  kRecomputeMode,
  kRecomputeLayers,
  kRecomputeEvery,
  kOrder,
  kOverlapGradReduce,
  kOverlapParamGather,
  kOverlapTp,
  kOverlapPp,
  kFramework,
  kOther,  // a sub-result uses it as it likes
  kCount
};

class LayoutCode {
 public:
  LayoutCode() = default;
  explicit LayoutCode(const Scenario& scenario);

  std::uint32_t& operator[](Field field) { return fields_[static_cast<std::size_t>(field)]; }
  std::uint32_t of(Field field) const { return fields_[static_cast<std::size_t>(field)]; }
  LayoutCode without(std::initializer_list<Field> fields) const {
    LayoutCode out = *this;
    for (const Field field : fields) out[field] = 0;
    return out;
  }
  std::size_t hash() const;
  bool operator==(const LayoutCode&) const = default;

 private:
  std::array<std::uint32_t, static_cast<std::size_t>(Field::kCount)> fields_{};
};

struct LayoutCodeHash {
  std::size_t operator()(const LayoutCode& code) const { return code.hash(); }
};

// Values made once for each key. Neighbours in a search mostly ask for the same one again.
template <class T>
class Remembered {
 public:
  template <class Make>
  const T& get(const LayoutCode& key, Make make) {
    if (last_ != nullptr && key == last_key_) return *last_;
    const auto found = known_.find(key);
    last_ = found != known_.end() ? &found->second : &known_.emplace(key, make()).first->second;
    last_key_ = key;
    return *last_;
  }
  std::size_t size() const { return known_.size(); }

 private:
  std::unordered_map<LayoutCode, T, LayoutCodeHash> known_;
  LayoutCode last_key_;
  const T* last_ = nullptr;
};

}  // namespace stepcast
