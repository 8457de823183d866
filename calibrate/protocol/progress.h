// SPDX-License-Identifier: Apache-2.0
// How far a long run is, as a line of text; printing it is the caller's:
//   calibrate   37 of 120  [=====>          ]  about 40 s left  gemm forward 512 x 768 x 768
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

class Progress {
 public:
  Progress(std::string title, std::int64_t total);

  void skip();                  // a point that an earlier run has measured
  void finish(double seconds);  // a point that took so long
  std::int64_t done() const { return done_; }

  // It follows from the points of this run: the mean of all but the fastest and the slowest tenth,
  // so that one interruption does not frighten anyone. None before the first.
  std::optional<double> seconds_left() const;

  // At most `columns` long; `current` gives way first.
  std::string line(const std::string& current, std::size_t columns = 100) const;

 private:
  std::string title_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  std::vector<double> seconds_;
};

// "about 5 s", "about 40 s", "about 3 min", "about 1 h 20 min": as exact as such an estimate is.
std::string rough_duration(double seconds);

}  // namespace stepcast
