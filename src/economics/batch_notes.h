// SPDX-License-Identifier: Apache-2.0
// The literature says this about the size of a batch: notes with sources, no forecast.
#pragma once

#include <string>
#include <vector>

namespace stepcast {

// Tokens at which a step learns half as much per token as a tiny one does: 2.1e8 / loss^(1/0.21),
// loss in nats (Kaplan et al. 2020, arXiv 2001.08361, section 5.1, with the gradient noise scale of
// McCandlish et al. 2018, arXiv 1812.06162).
double critical_batch_tokens(double loss);

std::vector<std::string> batch_notes(double tokens_per_step);

// The batch in tokens that a run of so many active parameters and tokens learns best with: 0.292
// C^0.3271 for its C = 6 N D FLOPs (DeepSeek LLM, arXiv 2401.02954, section 3.1).
double proposed_batch_tokens(double parameters, double tokens);

}  // namespace stepcast
