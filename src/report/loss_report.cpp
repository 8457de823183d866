// SPDX-License-Identifier: Apache-2.0
#include "report/loss_report.h"

#include <fmt/format.h>

#include <optional>

#include "core/json_tree.h"
#include "economics/part_loss.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "report/number_text.h"
#include "report/prediction_json.h"

namespace stepcast {
namespace {

constexpr double kHour = 3600;

std::optional<Seconds> repair_of(const Scenario& scenario) {
  return scenario.run ? scenario.run->repair : std::nullopt;
}

// Until the part is back, or in an hour.
PartLoss loss_of(const LossReport& loss, const Prediction& after) {
  const Seconds away = repair_of(loss.whole).value_or(Seconds(kHour));
  return part_loss(loss.before.tokens_per_s, after.tokens_per_s, away);
}

}  // namespace

Written loss_table(const LossReport& loss, const Scenario& left, const Prediction& after,
                   Form form) {
  const Scenario& whole = loss.whole;
  Written out = heading("Until " + loss.part + " is back", form);
  out += bullet(fmt::format("{} of {} on {}, a global batch of {} for {}", left.layout.dp,
                            counted_text(whole.layout.dp, "replica"),
                            counted_text(left.cluster.gpus(), "GPU"), left.training.global_batch,
                            whole.training.global_batch),
                form);
  out += bullet(fmt::format("{} tokens/s for {}: {}", number_text(after.tokens_per_s),
                            number_text(loss.before.tokens_per_s),
                            signed_percent_text(after.tokens_per_s / loss.before.tokens_per_s - 1)),
                form);
  const std::optional<Seconds> repair = repair_of(whole);
  const Seconds away = repair.value_or(Seconds(kHour));
  const PartLoss lost = loss_of(loss, after);
  const char* words = repair ? "until then" : "each hour (run.repair is not stated)";
  out += bullet(
      fmt::format("{} {} cost {} tokens, as many as {} of the whole cluster", duration_text(away),
                  words, number_text(lost.tokens), duration_text(lost.of_all)),
      form);
  return out;
}

Json loss_object(const LossReport& loss, const Scenario& left, const Prediction& after) {
  Json out;
  out["part"] = loss.part;
  out["gpus"] = left.cluster.gpus();
  out["gpus_before"] = loss.whole.cluster.gpus();
  out["dp"] = left.layout.dp;
  out["dp_before"] = loss.whole.layout.dp;
  out["global_batch"] = left.training.global_batch;
  out["global_batch_before"] = loss.whole.training.global_batch;
  put(out, "step_time_before_s", loss.before.step_time.value());
  put(out, "tokens_per_s_before", loss.before.tokens_per_s);
  const PartLoss lost = loss_of(loss, after);
  put(out, "lost_tokens_per_s", lost.tokens_per_s);
  if (const auto away = repair_of(loss.whole)) {
    put(out, "repair_s", away->value());
    put(out, "lost_tokens", lost.tokens);
    put(out, "lost_time_s", lost.of_all.value());
  }
  return out;
}

}  // namespace stepcast
