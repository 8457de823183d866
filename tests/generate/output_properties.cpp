// SPDX-License-Identifier: Apache-2.0
// Checks that what one forecast says agrees with itself.
#include <fmt/format.h>

#include <cmath>

#include "generate/property.h"
#include "predict/memory_replay.h"
#include "predict/pricing.h"
#include "predict/timed_orders.h"
#include "program/program.h"
#include "report/breakdown.h"

namespace stepcast::generate {
namespace {

using nlohmann::ordered_json;

// Sums of parts that are rounded apart.
constexpr double kRounding = 1e-9;

bool differ(double one, double other) {
  return !(std::abs(one - other) <= kRounding * std::max(std::abs(one), std::abs(other)) + 1e-15);
}

Verdict has_a_forecast(Case& c) {
  if (c.forecast()) return holds();
  return violated(to_string(c.forecast().error()));
}

Verdict time_adds_up(Case& c) {
  const Prediction& p = *c.forecast();
  const double step = p.step_time.value();
  if (differ(p.time.total().value(), step)) {
    return violated(fmt::format("time_s adds up to {}, not {}", p.time.total().value(), step));
  }
  return holds();
}

Verdict classes_take_a_step(Case& c) {
  const Prediction& p = *c.forecast();
  const double step = p.step_time.value();
  for (const RankClass& one : p.rank_classes) {
    const double all = one.time.total().value();
    if (differ(all, step)) {
      return violated(fmt::format("rank {} has {} s of {}", one.ranks.front().value, all, step));
    }
  }
  return holds();
}

Verdict memory_adds_up(Case& c) {
  const Prediction& p = *c.forecast();
  ByteCount peak = 0, device = 0;
  for (const RankClass& one : p.rank_classes) {
    ByteCount sum = 0;
    for (const ByteCount part : one.memory) sum += part;
    if (sum != one.peak_memory) {
      return violated(fmt::format("memory_bytes adds up to {}, not {}", sum, one.peak_memory));
    }
    if (one.reserved_bytes < one.peak_memory) {
      return violated(fmt::format("{} bytes reserved for {}", one.reserved_bytes, sum));
    }
    peak = std::max(peak, sum);
    // GPUs of several kinds count where they have as much memory as the one with the least room.
    if (one.device_memory == p.device_memory) device = std::max(device, device_bytes(one));
    if (one.device_memory - device_bytes(one) < p.device_memory - p.peak_device) {
      return violated(fmt::format("rank {} has less room", one.ranks.front().value));
    }
  }
  if (peak != p.peak_memory || device != p.peak_device) {
    return violated(fmt::format("peaks of the ranks are {} and {}, not {} and {}", peak, device,
                                p.peak_memory, p.peak_device));
  }
  return holds();
}

Verdict waterfall_adds_up(Case& c) {
  const Prediction& p = *c.forecast();
  Seconds sum;
  for (const TimePart& part : steps_of(p.waterfall)) sum += part.time;
  const bool peak =
      c.scenario().cluster.spec.accelerator.peak(c.scenario().training.precision).has_value();
  if (!peak) return does_not_apply();
  if (!differ(sum.value(), p.step_time.value())) return holds();
  return violated(
      fmt::format("the waterfall adds up to {}, not {}", sum.value(), p.step_time.value()));
}

Verdict provenance_adds_up(Case& c) {
  double sum = 0;
  for (const double share : c.forecast()->provenance) sum += share;
  if (!differ(sum, 1)) return holds();
  return violated(fmt::format("provenance adds up to {}", sum));
}

Verdict ranks_are_whole(Case& c) {
  std::vector<int> seen(static_cast<std::size_t>(c.scenario().cluster.gpus()), 0);
  for (const RankClass& one : c.forecast()->rank_classes) {
    for (const RankId rank : one.ranks) ++seen.at(rank.index());
  }
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank] != 1) return violated(fmt::format("rank {} is in {} classes", rank, seen[rank]));
  }
  return holds();
}

// The path of the first number below zero or not finite; empty: there is none.
template <class Wrong>
std::string find_number(const ordered_json& value, const std::string& path, const Wrong& wrong) {
  if (value.is_number() && wrong(path, value.get<double>())) {
    return fmt::format("{} is {}", path, value.dump());
  }
  if (value.is_structured()) {
    for (const auto& [key, item] : value.items()) {
      std::string found = find_number(item, path + "." + key, wrong);
      if (!found.empty()) return found;
    }
  }
  return "";
}

Verdict nothing_but(Case& c, bool (*wrong)(const std::string& path, double value)) {
  const std::string found = find_number(c.document(), "", wrong);
  return found.empty() ? holds() : violated(found);
}

bool is_of_waterfall(const std::string& path) { return path.starts_with(".waterfall_s"); }
bool is_of_memory(const std::string& path) {
  return path.ends_with("_bytes") || path.find(".memory_bytes.") != std::string::npos;
}

Verdict memory_is_not_negative(Case& c) {
  return nothing_but(
      c, [](const std::string& path, double value) { return is_of_memory(path) && !(value >= 0); });
}
Verdict waterfall_is_not_negative(Case& c) {
  return nothing_but(c, [](const std::string& path, double value) {
    return is_of_waterfall(path) && !(value >= 0);
  });
}
Verdict nothing_else_is_negative(Case& c) {
  return nothing_but(c, [](const std::string& path, double value) {
    return !is_of_waterfall(path) && !is_of_memory(path) && !(value >= 0 && std::isfinite(value));
  });
}

// Figures that are not finite are left out, so that one that is missing is one.
Verdict nothing_is_missing(Case& c) {
  const ordered_json& document = c.document();
  for (const char* key : {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s",
                          "tokens_per_s_per_gpu", "model_tflops_per_gpu", "hardware_tflops_per_gpu",
                          "mfu", "bubble_fraction", "bubble_fraction_steady"}) {
    if (!document.contains(key)) return violated(fmt::format("there is no {}", key));
  }
  const std::size_t parts = document["time_s"].size() + document["time_s"]["exposed"].size() - 1;
  if (parts != kTimeParts.size()) return violated(fmt::format("time_s has {} parts", parts));
  if (document["provenance"].size() != kProvenances) return violated("provenance misses a part");
  return holds();
}

Verdict utilisation_is_at_most_one(Case& c) {
  const Prediction& p = *c.forecast();
  if (p.mfu > 1) return violated(fmt::format("MFU {}", p.mfu));
  if (std::isfinite(p.hfu) && p.hfu > 1) return violated(fmt::format("HFU {}", p.hfu));
  if (std::isfinite(p.hfu) && p.hfu < p.mfu * (1 - kRounding)) {
    return violated(fmt::format("HFU {} below MFU {}", p.hfu, p.mfu));
  }
  return holds();
}

Verdict shares_are_at_most_one(Case& c) {
  const Prediction& p = *c.forecast();
  if (p.bubble_fraction > 1 || p.bubble_fraction_steady > 1) {
    return violated(
        fmt::format("bubble {}, steady {}", p.bubble_fraction, p.bubble_fraction_steady));
  }
  const ordered_json& document = c.document();
  if (!document.contains("economics")) return holds();
  const std::string found =
      find_number(document["economics"], "", [](const std::string& path, double value) {
        const bool share = path.find("goodput") != std::string::npos ||
                           path.find("shares") != std::string::npos ||
                           path.find("chance") != std::string::npos;
        return share && value > 1 + kRounding;
      });
  return found.empty() ? holds() : violated("economics" + found);
}

Verdict interval_holds_the_point(Case& c) {
  const Prediction& p = *c.forecast();
  const bool inside = Seconds(0) < p.step_time_low && p.step_time_low <= p.step_time &&
                      p.step_time <= p.step_time_high;
  if (inside && std::isfinite(p.step_time_high.value())) return holds();
  return violated(fmt::format("{} to {} around {}", p.step_time_low.value(),
                              p.step_time_high.value(), p.step_time.value()));
}

// The replay itself asserts that a step leaves nothing behind its states, and that no part is ever
// below them; here it is asked for every role, and so is the timeline.
Verdict memory_returns_to_the_states(Case& c) {
  const auto pricing = make_pricing(c.scenario(), source_folders());
  if (!pricing) return violated(to_string(pricing.error()));
  const Program program = lower(c.scenario(), timed_orders(c.scenario(), **pricing));
  for (const Role& role : program.roles) {
    ByteCount least = 0;
    replay_memory(program, role, [&](const MemoryMoment& moment) {
      for (const ByteCount bytes : moment.parts) least = std::min(least, bytes);
    });
    if (least < 0) return violated(fmt::format("stage {} has {} bytes", role.stage, least));
  }
  for (const MemorySample& sample : c.forecast()->memory_samples) {
    for (const ByteCount bytes : sample.parts) {
      if (bytes < 0) return violated(fmt::format("a sample of {} bytes", bytes));
    }
  }
  return holds();
}

}  // namespace

std::vector<Property> output_properties() {
  return {
      {"has_a_forecast", "a legal scenario has a forecast", has_a_forecast, 1, 100},
      {"time_adds_up", "the parts of the time of the critical rank are the step time", time_adds_up,
       1, 100},
      {"classes_take_a_step", "the parts of the time of each rank are the step time",
       classes_take_a_step, 1, 100},
      {"memory_adds_up", "the parts of memory are the peak, and peaks are those of the ranks",
       memory_adds_up, 1, 100},
      {"waterfall_adds_up", "the steps of the waterfall are the step time", waterfall_adds_up, 1,
       95},
      {"provenance_adds_up", "the shares of the provenance are one", provenance_adds_up, 1, 100},
      {"ranks_are_whole", "every rank is in one class", ranks_are_whole, 1, 100},
      {"memory_is_not_negative", "no size is below zero", memory_is_not_negative, 1, 100},
      {"waterfall_is_not_negative", "no step of the waterfall is below zero",
       waterfall_is_not_negative, 1, 100},
      {"nothing_else_is_negative", "no other number of the output is below zero or not finite",
       nothing_else_is_negative, 1, 100},
      {"nothing_is_missing", "no figure is left out because it is not finite", nothing_is_missing,
       1, 100},
      {"utilisation_is_at_most_one", "MFU and HFU are at most one, and HFU no less than MFU",
       utilisation_is_at_most_one, 1, 100},
      {"shares_are_at_most_one", "bubbles, goodput and chances are at most one",
       shares_are_at_most_one, 1, 100},
      {"interval_holds_the_point", "the interval holds the step time", interval_holds_the_point, 1,
       100},
      {"memory_returns_to_the_states", "a step leaves the states and nothing else in memory",
       memory_returns_to_the_states, 1, 100},
  };
}

}  // namespace stepcast::generate
