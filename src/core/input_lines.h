// SPDX-License-Identifier: Apache-2.0
// Standard input, or another open file, line by line as it comes. A line that is too long is
// dropped while it is read, so that whoever writes it cannot fill the memory.
#pragma once

#include <cstddef>
#include <string>

namespace stepcast {

class InputLines {
 public:
  enum class Kind { kWhole, kTooLong, kEnd };

  InputLines(int file, std::size_t longest) : file_(file), longest_(longest) {}

  // The next line without its line feed, which the last one may lack. Waits until there is one. A
  // read that fails is the end.
  Kind next(std::string& line);

 private:
  bool fill();

  int file_;
  std::size_t longest_;
  std::string block_;
  std::size_t begin_ = 0;  // in the block
};

}  // namespace stepcast
