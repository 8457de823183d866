// SPDX-License-Identifier: Apache-2.0
// A suite's file that is made, or gets more cases. What else it holds stays as it is.
#pragma once

#include <string>

#include "core/json_tree.h"
#include "core/result.h"
#include "core/text/written.h"

namespace stepcast {

struct DataFolders;

// The notes that a log makes of itself begin with this; others are of people.
inline constexpr const char* kNotesOfALog = "Median of ";

class SuiteFile {
 public:
  // The suite of a file, or an empty one where there is none. Errors: a file that is no suite.
  static Result<SuiteFile> open(const std::string& file);

  // In the place of a case with its id, whose run becomes an earlier one, while what people wrote
  // of it stays. The same run again takes its own place.
  void add(Json one, const DataFolders& folders);

  // A line for each case. Errors: cases that make no suite.
  Result<Written> text() const;

 private:
  std::string file_;
  Json suite_;
};

}  // namespace stepcast
