// SPDX-License-Identifier: Apache-2.0
// A variable of the environment for as long as this lives.
#pragma once

#include <cstdlib>
#include <string>

namespace stepcast::testing {

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace stepcast::testing
