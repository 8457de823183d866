// SPDX-License-Identifier: Apache-2.0
// The checks of a whole scenario add what they find. A rule that reads a key with an error stays
// silent: its value is not what the user meant, and a second message would only mislead.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace stepcast {

// The path of a key that a rule reads, with a bit for its first two names (all bits where it has
// one). Paths with others are not around each other: searches ask millions of times, mostly in
// vain, so the compiler makes the bit of a literal.
class KeyPath {
 public:
  consteval KeyPath(const char* path) : KeyPath(std::string_view(path)) {}
  constexpr explicit KeyPath(std::string_view path) : text_(path), bits_(bits_of(path)) {}
  constexpr std::string_view text() const { return text_; }
  constexpr std::uint64_t bits() const { return bits_; }

 private:
  static constexpr std::uint64_t bits_of(std::string_view path) {
    std::uint64_t hash = 0;
    int names = 1;
    for (const char letter : path) {
      if ((letter == '.' || letter == '[') && ++names > 2) break;
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x9e3779b97f4a7c15;
    }
    return names > 1 ? std::uint64_t{1} << (hash >> 58) : ~std::uint64_t{0};
  }

  std::string_view text_;
  std::uint64_t bits_;
};

// Paths of keys, to ask whether another one is around them or inside: "layout" is around
// "layout.tp" and "layout.stage_layers[2]", not around "layouts".
class KeyPaths {
 public:
  KeyPaths() = default;
  explicit KeyPaths(std::vector<std::string> paths);
  void add(std::string path);
  bool concern(const KeyPath& path) const {
    return (bits_ & path.bits()) != 0 && are_around_or_inside(path.text());
  }

 private:
  bool are_around_or_inside(std::string_view path) const;

  std::vector<std::string> paths_;
  std::uint64_t bits_ = 0;
};

class Findings {
 public:
  Findings() = default;
  explicit Findings(const Errors& earlier);  // of the same document
  // `unknown`: paths that have no value yet, kept by reference.
  explicit Findings(const KeyPaths& unknown) : unknown_(&unknown) {}

  void distrust(std::string path);
  // No error so far concerns one of these keys, an object around it or a value inside it.
  bool trusts(std::initializer_list<KeyPath> paths) const {
    for (const KeyPath& path : paths) {
      if (distrusted_.concern(path) || (unknown_ != nullptr && unknown_->concern(path))) {
        return false;
      }
    }
    return true;
  }

  void illegal(std::string path, std::string message, std::string hint);
  void unsupported(std::string path, std::string message, std::string hint = "");
  void missing(std::string path, std::string message, std::string hint);

  const Errors& errors() const { return errors_; }

 private:
  Errors errors_;
  KeyPaths distrusted_;
  const KeyPaths* unknown_ = nullptr;
};

}  // namespace stepcast
