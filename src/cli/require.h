// SPDX-License-Identifier: Apache-2.0
// --require: what a forecast must keep, with an exit code of its own.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/session.h"
#include "report/requirement.h"

namespace stepcast {
struct Prediction;
}  // namespace stepcast

namespace stepcast::cli {

class Require {
 public:
  void add_to(CommandLine app);

  // Before any work. Errors: what the flag's text says.
  Errors read();
  // Judges the forecast that the command answers with. Errors: figures that it does not have.
  Errors judge(const Prediction& prediction, const RunOutlook* run);
  // After the output: what is not kept, on standard error, and the exit code; `code` where all is.
  int code(int code) const;

  bool given() const { return !requirements_.empty(); }

 private:
  Flag flag_;
  std::string text_;
  std::vector<Requirement> requirements_;
  std::vector<std::string> broken_;
};

}  // namespace stepcast::cli
