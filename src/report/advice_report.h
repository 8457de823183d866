// SPDX-License-Identifier: Apache-2.0
// The outcome of `plan --advise` in every format (docs/advise.md).
#pragma once

#include <string>
#include <vector>

#include "core/text/written.h"
#include "plan/advise/advise.h"

namespace stepcast {

struct AdviceReport {
  const Scenario& base;  // model, cluster and training as they are stated
  const Advice& advice;
};

Written advice_table(const AdviceReport& report);
Written advice_markdown(const AdviceReport& report);
Written advice_json(const AdviceReport& report);

// Names the demands, in the words of all formats.
std::string demands_text(const AdviceReport& report);
// Says why the advised rung is the answer, or that no rung is.
std::string because_text(const AdviceReport& report);
// Speaks for a report that has neither an advice nor a way out.
std::string no_way_out_text(const AdviceReport& report);
// A way out in words ("FSDP (ZeRO-3) on 4 GPUs, 5,100 tokens/s ..."), or what it lacks.
std::string way_out_text(const RungResult& way, const Scenario& base);
// Why a rung is where it is, in figures: "needs 1238 of 75.19 GiB: parameters 131.4, ...".
std::string rung_text(const AdviceReport& report, const RungResult& result);
// "tp 8 · pp 2 · ... · megatron".
std::string layout_words(const RungResult& result);
// "59.4 days of at most 30.0 days".
std::string shortfall_text(const Shortfall& shortfall);

}  // namespace stepcast
