// SPDX-License-Identifier: Apache-2.0
// A shared library that is looked for when it is first needed: programs that may use it start on
// machines without it, and say so only when they would.
#pragma once

#include <optional>
#include <string>

namespace stepcast {

class SharedLibrary {
 public:
  // `title` and `oldest`, a version, are for messages. `elsewhere`: another file where `file` is
  // not found; may be empty. The library stays for the life of the process.
  SharedLibrary(std::string title, std::string file, std::string oldest,
                const std::string& elsewhere = "");

  // Null where the library is older than the function.
  template <typename Function>
  void look_for(Function& to, const char* name) const {
    to = reinterpret_cast<Function>(find(name));
  }
  template <typename Function>
  void need(Function& to, const char* name) {
    look_for(to, name);
    if (to == nullptr) miss(name);
  }

  // The loader said this of `file`; empty if it was found, or another file in its place.
  const std::string& loader_error() const { return loader_error_; }
  // Why it cannot be called: it is not there, or lacks a needed function. Nothing where it can.
  const std::optional<std::string>& why_not() const { return why_not_; }

 private:
  void* find(const char* name) const;
  void miss(const char* name);

  std::string title_, file_, oldest_;
  void* handle_;
  std::string loader_error_;
  std::optional<std::string> why_not_;
};

}  // namespace stepcast
