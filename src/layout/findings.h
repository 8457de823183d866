// SPDX-License-Identifier: Apache-2.0
// What the checks of a whole scenario find. A rule that reads a key which already carries an error
// stays silent: its value is not what the user meant, and a second message would only mislead.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace stepcast {

// Paths of keys, to ask whether another one is around them or inside: "layout" is around
// "layout.tp" and "layout.stage_layers[2]", not around "layouts".
class KeyPaths {
 public:
  KeyPaths() = default;
  explicit KeyPaths(std::vector<std::string> paths);
  void add(std::string path);
  bool concern(std::string_view path) const;

 private:
  std::vector<std::string> paths_;
  // A bit for each beginning of a path: searches ask millions of times, mostly in vain.
  std::uint64_t begins_ = 0;
};

class Findings {
 public:
  Findings() = default;
  explicit Findings(const Errors& earlier);  // of the same document
  // `unknown`: paths that have no value yet, kept by reference.
  explicit Findings(const KeyPaths& unknown) : unknown_(&unknown) {}

  void distrust(std::string path);
  // No error so far concerns one of these keys, an object around it or a value inside it.
  bool trusts(std::initializer_list<std::string_view> paths) const;

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
