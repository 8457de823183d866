// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/diagnosis_report.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

std::string times_text(double ratio) { return fmt::format("{:.2f} times", ratio); }
std::string length_text(double seconds) { return time_text(Seconds(std::abs(seconds))); }

std::string both(const Gap& gap) {
  return fmt::format("{} instead of {}", length_text(gap.measured_s), length_text(gap.forecast_s));
}

const ComparedMessages* messages_of(const Gap& gap, const Diagnosis& diagnosis) {
  const std::string first = gap.what.substr(0, gap.what.find(", "));
  const auto found = std::ranges::find(diagnosis.messages, first, &ComparedMessages::words);
  return found == diagnosis.messages.end() ? nullptr : &*found;
}

// "42.1 GB/s on the bus where the forecast has 90.3 GB/s"
std::string bandwidths(const Gap& gap, const Diagnosis& diagnosis) {
  const ComparedMessages* one = messages_of(gap, diagnosis);
  if (one == nullptr || one->measured.bytes <= 0) return "";
  return fmt::format(": {} on the bus where the forecast has {}",
                     rate_text(BytesPerSecond(one->bandwidth(one->measured, one->waited_s))),
                     rate_text(BytesPerSecond(one->bandwidth(one->forecast))));
}

std::string batch_words(const Gap& gap) {
  return fmt::format(
      "the run does {} the work per step that the scenario says, which is {} of "
      "{}",
      times_text(gap.ratio), length_text(gap.seconds),
      gap.seconds < 0 ? "time that it does not need" : "the difference");
}

std::string kernel_words(const Gap& gap) {
  if (gap.forecast_s <= 0) {
    return fmt::format("{} take {} that the forecast does not have", gap.what,
                       length_text(gap.measured_s));
  }
  if (gap.measured_s <= 0) {
    return fmt::format("{}: the forecast has {}, the run has none", gap.what,
                       length_text(gap.forecast_s));
  }
  return fmt::format("{}: {} their forecast, {}", gap.what, times_text(gap.ratio), both(gap));
}

std::string late_calls(const Gap& gap) {
  if (gap.late_calls == 0) return "";
  return fmt::format("; {} of {} calls wait for the host", gap.late_calls, gap.calls);
}

std::string message_words(const Gap& gap, const Diagnosis& diagnosis) {
  switch (gap.cause) {
    case GapCause::kSlowLink:
      return fmt::format("{} takes {} its forecast{}{}; {} of it is exposed", gap.what,
                         times_text(gap.ratio), bandwidths(gap, diagnosis), late_calls(gap),
                         both(gap));
    case GapCause::kMoreBytes:
      return fmt::format("{} moves {} the bytes of its forecast; {} of it is exposed", gap.what,
                         times_text(gap.ratio), both(gap));
    case GapCause::kLateMessages:
      return fmt::format(
          "{} waits for the host: {} of {} calls were launched when the GPU had "
          "nothing left to do; {} is exposed",
          gap.what, gap.late_calls, gap.calls, both(gap));
    case GapCause::kRankWaits:
      return fmt::format(
          "{} waits for {}: {} of its time lies before the last rank's arrival; {} "
          "is exposed",
          gap.what,
          gap.rank ? fmt::format("other ranks, most of all rank {}", gap.rank->value)
                   : std::string("other ranks"),
          percent_text(gap.ratio, 0), both(gap));
    case GapCause::kOtherMessages:
      if (gap.calls == 0) return fmt::format("the run has no {}, the forecast has", gap.what);
      return fmt::format("the run communicates otherwise than the forecast: {}; {} is exposed",
                         gap.what, both(gap));
    case GapCause::kMoreOverlap:
      return fmt::format("{} is hidden better than forecast: {} is exposed", gap.what, both(gap));
    default:
      return fmt::format("{} is as fast as forecast and less hidden: {} is exposed{}", gap.what,
                         both(gap), late_calls(gap));
  }
}

std::string idle_words(const Gap& gap) {
  switch (gap.cause) {
    case GapCause::kHost:
      return gap.ratio > kHostWaits
                 ? fmt::format(
                       "the GPU waits for the host, {}; in {} of it the host itself waits "
                       "for the GPU",
                       both(gap), percent_text(gap.ratio, 0))
                 : fmt::format("the GPU waits for the host to launch kernels, {}", both(gap));
    case GapCause::kBubble:
      return fmt::format("the GPU waits for other stages, {}", both(gap));
    case GapCause::kCopies:
      return fmt::format("the GPU waits for copies, {}", both(gap));
    case GapCause::kStarts:
      return fmt::format("the GPU stands still between kernels that were launched in time, {}",
                         both(gap));
    case GapCause::kOtherStreams:
      return fmt::format("kernels wait for events of other streams, {}", both(gap));
    default:
      return fmt::format("the GPU stands still and nothing tells why, {}", both(gap));
  }
}

bool is_about_messages(GapCause cause) {
  return cause >= GapCause::kSlowLink && cause <= GapCause::kMoreOverlap;
}

}  // namespace

std::string gap_sentence(const Gap& gap, const Diagnosis& diagnosis) {
  if (is_about_messages(gap.cause)) return message_words(gap, diagnosis);
  switch (gap.cause) {
    case GapCause::kBatch:
      return batch_words(gap);
    case GapCause::kStraggler:
      return fmt::format(
          "rank {} is a straggler: it computes {} as long as the others, who wait "
          "for it, {}",
          gap.rank->value, times_text(gap.ratio), both(gap));
    case GapCause::kClocks:
      return fmt::format("all kernels alike take {} their forecast, {}", times_text(gap.ratio),
                         both(gap));
    case GapCause::kKernels:
    case GapCause::kExtraKernels:
      return kernel_words(gap);
    case GapCause::kBesideMessages:
      return fmt::format(
          "kernels take {} their forecast because communication runs beside them "
          "for longer, {}",
          times_text(gap.ratio), both(gap));
    default:
      return idle_words(gap);
  }
}

std::string diagnosis_verdict(const Diagnosis& diagnosis) {
  const double difference = diagnosis.measured_s / std::max(diagnosis.forecast_s, 1e-12) - 1;
  std::string out =
      fmt::format("a step takes {}, its forecast is {} ({})", length_text(diagnosis.measured_s),
                  length_text(diagnosis.forecast_s), signed_percent_text(difference));
  if (diagnosis.gaps.empty()) {
    return out + fmt::format("; no gap is larger than {} of the step", percent_text(kNamedGap, 0));
  }
  return out + "; first of all, " + gap_sentence(diagnosis.gaps.front(), diagnosis);
}

}  // namespace stepcast
