// SPDX-License-Identifier: Apache-2.0
// Goes through a test's cases. A loop that found nothing to look at has shown nothing, and fails.
#pragma once

#include <gtest/gtest.h>

#include <utility>

namespace stepcast {

// The range itself: `for (const Case& c : each_of(cases()))`.
template <class Range>
Range each_of(Range&& range) {
  EXPECT_NE(range.begin(), range.end()) << "there is nothing to go through";
  return std::forward<Range>(range);
}

// How many things a loop has checked that passes over some: `++checked` where it looks at one. It
// fails when there were fewer than it says.
class AtLeast {
 public:
  explicit AtLeast(long count) : least_(count) {}
  ~AtLeast() { EXPECT_GE(checked_, least_) << "too little was there to check"; }
  AtLeast(const AtLeast&) = delete;
  AtLeast& operator=(const AtLeast&) = delete;
  void operator++() { ++checked_; }

 private:
  long least_;
  long checked_ = 0;
};

}  // namespace stepcast
