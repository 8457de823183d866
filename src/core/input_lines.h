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

  // A carriage return ends a line, too: progress bars write over themselves with it.
  enum class Ends { kLineFeeds, kCarriageReturnsToo };

  InputLines(int file, std::size_t longest, Ends ends = Ends::kLineFeeds, double silence_s = 0)
      : file_(file), longest_(longest), ends_(ends), silence_s_(silence_s) {}

  // The next line without its line feed, which the last one may lack. Waits until there is one; of
  // a file that does not wait, for `silence_s`. After the end ask why it is there.
  Kind next(std::string& line);

  bool was_ended() const { return was_ended_; }    // the last line: by its line feed
  bool fell_silent() const { return is_silent_; }  // the end: because nothing more came
  int failed() const { return failed_; }  // the end: because a read failed, with this errno; else 0

 private:
  bool fill();
  bool wait();

  int file_;
  std::size_t longest_;
  Ends ends_;
  double silence_s_;
  bool was_ended_ = false, is_silent_ = false;
  int failed_ = 0;
  std::string block_;
  std::size_t begin_ = 0;  // in the block
};

}  // namespace stepcast
