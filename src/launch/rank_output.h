// SPDX-License-Identifier: Apache-2.0
// Separates the output of ranks that `mpirun --tag-output` has merged. Open MPI forwards what ranks
// write in chunks of up to 4096 bytes and sets a tag, [job,rank]<stderr>:, before each chunk and
// each line within it; a line that two chunks share has a tag in its middle, and another rank's
// chunk may stand between the two. What mpirun says itself has no tag.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stepcast {

class RankOutput {
 public:
  static constexpr int kLauncher = -1;  // in the place of a rank: mpirun's own words
  using Sink = std::function<void(int rank, std::string_view line)>;

  explicit RankOutput(Sink sink) : sink_(std::move(sink)) {}

  void add(std::string_view text);
  void end();  // unfinished lines count as lines

 private:
  void physical_line(std::string_view line, bool ended);
  void part(int rank, std::string_view text, bool ended);

  Sink sink_;
  std::string pending_;                 // not yet ended by a newline
  std::map<int, std::string> unended_;  // by rank
};

}  // namespace stepcast
