// SPDX-License-Identifier: Apache-2.0
// Unpacks gzip piece by piece, so that a trace need never lie in memory whole.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace stepcast {

// The first two bytes of a gzip file (RFC 1952, section 2.3.1).
inline constexpr std::string_view kGzipMark = "\x1f\x8b";

class Gunzip {
 public:
  using Take = std::function<bool(std::string_view)>;  // false: it has seen enough
  explicit Gunzip(Take take);
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip();

  // False once nothing more is wanted, or the text is damaged.
  bool feed(std::string_view packed);
  // Says what is wrong with the file, after its last piece; "" for nothing.
  std::string wrong() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast
