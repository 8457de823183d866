// SPDX-License-Identifier: Apache-2.0
// Learned logits of attention, one for each head, which take part in its softmax and bring no value
// (OpenAI 2025, arXiv 2508.10925, section 2.2). With z the log-sum-exp over the keys and a the
// logit of a head it becomes s = log(exp(z) + exp(a)), and the context exp(z - s) times what it
// was. Backward attention reads s, and the gradient of a is minus the sum over all tokens of
// exp(a - s) times the product of the context and its gradient.
#pragma once

#include "kernels/arguments.h"

namespace stepcast::cpu {

void add_sinks(const AttentionSinkArguments& call);
void sink_gradient(const SinkGradientArguments& call);  // adds

}  // namespace stepcast::cpu
