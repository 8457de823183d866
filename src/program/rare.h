// SPDX-License-Identifier: Apache-2.0
// A part that few of many objects have. It takes one pointer where there is none, and is copied
// with the object.
#pragma once

#include <memory>
#include <utility>

namespace stepcast {

template <class T>
class Rare {
 public:
  Rare() = default;
  Rare(const Rare& other) : own_(other.own_ ? std::make_unique<T>(*other.own_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    own_ = std::move(other.own_);
    return *this;
  }
  ~Rare() = default;

  bool exists() const { return own_ != nullptr; }
  const T& get() const {  // an empty one where there is none
    static const T kNone{};
    return own_ ? *own_ : kNone;
  }
  T& make() {  // makes an empty one unless there is one
    if (!own_) own_ = std::make_unique<T>();
    return *own_;
  }

 private:
  std::unique_ptr<T> own_;
};

}  // namespace stepcast
