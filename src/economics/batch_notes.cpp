// SPDX-License-Identifier: Apache-2.0
#include "economics/batch_notes.h"

#include <fmt/format.h>

#include <cmath>

namespace stepcast {

double critical_batch_tokens(double loss) { return 2.1e8 * std::pow(loss, -1 / 0.21); }

double proposed_batch_tokens(double parameters, double tokens) {
  constexpr double kFactor = 0.2920, kPower = 0.3271;
  return kFactor * std::pow(6 * parameters * tokens, kPower);
}

std::vector<std::string> batch_notes(double tokens_per_step) {
  constexpr double kEarly = 3, kLate = 2;  // nats; the batch that pays grows as the loss falls
  // How many percent more tokens training takes than with ever smaller batches (McCandlish et al.,
  // equation 2.7).
  const auto extra = [&](double loss) {
    return tokens_per_step / critical_batch_tokens(loss) * 100;
  };
  return {
      fmt::format("a step has {:.3g} M tokens; by the gradient noise scale it takes {:.0f} % more "
                  "tokens than tiny batches at a loss of {}, {:.0f} % at {} (Kaplan et al. 2020, "
                  "section 5.1; McCandlish et al. 2018)",
                  tokens_per_step / 1e6, extra(kEarly), kEarly, extra(kLate), kLate),
      "another batch wants another learning rate: times the ratio with SGD (Goyal et al. 2017), "
      "times its square root with Adam (Malladi et al. 2022), after a warm-up"};
}

}  // namespace stepcast
