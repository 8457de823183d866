// SPDX-License-Identifier: Apache-2.0
// What the checks of a whole scenario find. A rule that reads a key which already carries an error
// stays silent: its value is not what the user meant, and a second message would only mislead.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace stepcast {

class Findings {
 public:
  Findings() = default;
  explicit Findings(const Errors& earlier);  // of the same document
  // `unknown`: paths that have no value yet, kept by reference.
  explicit Findings(std::span<const std::string> unknown) : unknown_(unknown) {}

  void distrust(std::string path);
  // No error so far concerns one of these keys, an object around it or a value inside it.
  bool trusts(std::initializer_list<std::string_view> paths) const;

  void illegal(std::string path, std::string message, std::string hint);
  void unsupported(std::string path, std::string message, std::string hint = "");
  void missing(std::string path, std::string message, std::string hint);

  const Errors& errors() const { return errors_; }

 private:
  Errors errors_;
  std::vector<std::string> distrusted_;
  std::span<const std::string> unknown_;
};

}  // namespace stepcast
