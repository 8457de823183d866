// SPDX-License-Identifier: Apache-2.0
#include "cli/require.h"

namespace stepcast::cli {

void Require::add_to(CommandLine app) {
  flag_ =
      app.add("--require", text_,
              "exit with 6 where the forecast does not keep this, for example \"fits, mfu>=0.4, "
              "days<=30, cost<=100k\"")
          .type_name("LIST");
}

Errors Require::read() {
  if (!flag_.given()) return {};
  auto read = parse_requirements(text_);
  if (!read) return read.error();
  requirements_ = std::move(*read);
  return {};
}

Errors Require::judge(const Prediction& prediction, const RunOutlook* run) {
  auto broken = broken_requirements(requirements_, prediction, run);
  if (!broken) return broken.error();
  broken_ = std::move(*broken);
  return {};
}

int Require::code(int code) const {
  for (const std::string& sentence : broken_) tell_line(sentence);
  return broken_.empty() ? code : kNotKept;
}

}  // namespace stepcast::cli
