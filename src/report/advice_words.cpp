// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layout/choices.h"
#include "layout/scenario.h"
#include "report/advice_report.h"
#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/plan_report.h"

namespace stepcast {
namespace {

constexpr double kWorthClimbing = 1.10;  // times as fast

std::string gpus_text(std::int64_t gpus) {
  return fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s");
}

std::string in_gib(ByteCount bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1073741824.0);
}

// The bytes of parameters, gradients and optimizer per parameter. It is 0 where the fullest rank
// does not hold all layers, and where most of what it holds is frozen.
double state_bytes_per_parameter(const RungResult& result, const RankClass& fullest) {
  const Scenario scenario = result.scenario();
  if (scenario.layout.tp * scenario.layout.pp > 1 || scenario.training.trains_adapters()) return 0;
  ByteCount states = 0;
  for (const auto part :
       {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kOptimizer}) {
    states += fullest.memory[static_cast<std::size_t>(part)];
  }
  return static_cast<double>(states) /
         static_cast<double>(count_parameters(scenario.model).total());
}

// "parameters 24.2, gradients 48.5, optimizer 145.5 (18.0 bytes a parameter), activations 3.1, ..."
std::string parts_text(const RungResult& result) {
  const auto& classes = result.layout->prediction.rank_classes;
  const RankClass& fullest = *std::ranges::max_element(
      classes, {}, [](const RankClass& one) { return device_bytes(one); });
  std::string out;
  const auto add = [&](const char* name, ByteCount bytes) {
    const std::string size = in_gib(bytes);
    if (size != "0.0") out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, size);
  };
  for (int part = 0; part < kMemoryCategories; ++part) {
    const auto category = static_cast<MemoryCategory>(part);
    add(name_of(category), fullest.memory[static_cast<std::size_t>(part)]);
    const double each =
        category == MemoryCategory::kOptimizer ? state_bytes_per_parameter(result, fullest) : 0;
    if (each > 0) out += fmt::format(" ({} bytes a parameter)", number_text(each, 3));
  }
  add("allocator", fullest.reserved_bytes - fullest.peak_memory);
  add("context and NCCL", fullest.framework_bytes);
  return out;
}

std::string memory_text(const RungResult& result) {
  return fmt::format("needs {} of {} GiB, as {}: {}; that is with {}",
                     in_gib(result.layout->prediction.peak_device), in_gib(result.memory_limit),
                     result.rung->holds, parts_text(result), layout_words(result));
}

std::string speed_text(const RungResult& result) {
  const Prediction& p = result.layout->prediction;
  return fmt::format("{} tokens/s, {} a step, {} GiB", number_text(p.tokens_per_s),
                     time_text(p.step_time), gib_text(p.peak_device));
}

// "29 % faster", "7.6 times as fast".
std::string faster_text(double speed) {
  if (speed >= 2) return fmt::format("{} times as fast", number_text(speed, 3));
  return fmt::format("{} {}", percent_text(std::abs(speed - 1)), speed >= 1 ? "faster" : "slower");
}

const RungResult& advised(const AdviceReport& report) {
  return report.advice.rungs[*report.advice.advised];
}

// Says what the run takes if the user has said how long it is.
std::string run_words(const Demands& demands, const RungResult& result) {
  if (!result.run || !result.run->forecast.length) return "";
  const RunLength& length = *result.run->forecast.length;
  std::string out = duration_text(Seconds(length.wall_s.value));
  if (demands.deadline) {
    out += fmt::format(" of {} (chance {})", duration_text(*demands.deadline),
                       chance_text(length.deadline_chance.value_or(0)));
  }
  if (length.dollars) out += ", " + dollars_text(length.dollars->value);
  if (demands.budget) {
    out += fmt::format(" of {} (chance {})", dollars_text(*demands.budget),
                       chance_text(length.budget_chance.value_or(0)));
  }
  return out;
}

// Says what the rungs above would gain.
std::string climb_text(const AdviceReport& report) {
  const RungResult& here = advised(report);
  const RungResult* above = best_above(report.advice);
  const double gain = above ? speed_against(*above, here) : 0;
  if (gain <= kNoticeableSpeed) return "";
  if (above->gpus > here.gpus) {
    return fmt::format("The other {} are not needed; {} over {} would be {}.",
                       gpus_text(above->gpus - here.gpus), above->rung->title,
                       gpus_text(above->gpus), faster_text(gain));
  }
  return fmt::format(
      "Higher up {} is {}: {}.", above->rung->title, faster_text(gain),
      gain > kWorthClimbing ? "worth the climb if your training code has it" : "a small gain");
}

std::string first_text(const AdviceReport& report) {
  const RungResult& here = advised(report);
  const Demands& demands = report.advice.demands;
  const bool asks = demands.of_speed() || demands.budget;
  if (here.gpus < report.base.cluster.gpus() && !demands.of_speed()) {
    return "One GPU meets the demands, and no rung that uses all of them does.";
  }
  std::string out = asks ? "The first rung that meets every demand" : "The first rung that fits";
  if (report.advice.interrupted) out += ", as far as the time allowed to search";
  const bool spares = std::ranges::any_of(report.advice.rungs, [](const RungResult& one) {
    return one.verdict == RungVerdict::kSpare;
  });
  const bool is_behind = std::ranges::any_of(report.advice.rungs, [](const RungResult& one) {
    return one.verdict == RungVerdict::kBehind;
  });
  if (spares) out += " and uses every GPU";
  if (is_behind) {
    out +=
        fmt::format(", with none above it {} times as fast", number_text(kWorthItsComplexity, 3));
  }
  const std::string run = run_words(demands, here);
  return out + (run.empty() ? "." : ": " + run + ".");
}

// Names the mode when the rung's is not the scenario's.
std::string mode_text(const AdviceReport& report) {
  const TrainingMode mode = advised(report).mode;
  if (mode == report.base.training.mode) return "";
  return fmt::format(
      "It takes training.mode {}: the base is held in 4 bits, which Dettmers et al. (2023) found "
      "to "
      "cost no quality against 16-bit LoRA.",
      name_of(mode));
}

// The least that any rung needs, or the best that any reaches.
std::string nothing_text(const AdviceReport& report) {
  const RungResult* nearest = nullptr;
  bool fits = false;
  for (const RungResult& result : report.advice.rungs) {
    if (!result.layout || (fits && !result.fits)) continue;
    const bool first = !nearest || (result.fits && !fits);
    const auto better = [&] {
      const Prediction &a = result.layout->prediction, &b = nearest->layout->prediction;
      return result.fits ? a.step_time < b.step_time : a.peak_device < b.peak_device;
    };
    if (first || better()) nearest = &result;
    fits = fits || result.fits;
  }
  if (!nearest) {
    return report.advice.interrupted
               ? "The search was stopped before it had found a layout; give it more time."
               : "No rung meets the demands.";
  }
  if (!fits) {
    const double times = static_cast<double>(nearest->layout->prediction.peak_device) /
                         static_cast<double>(nearest->memory_limit);
    return fmt::format("No rung fits on {}: the least needs {} times the memory ({}).",
                       gpus_text(report.base.cluster.gpus()), number_text(times, 3),
                       nearest->rung->title);
  }
  std::string out = "No rung meets every demand. The fastest that fits, ";
  out += nearest->rung->title;
  const char* before = ": ";
  for (const Shortfall& shortfall : nearest->shortfalls) {
    out += before + shortfall_text(shortfall);
    before = "; ";
  }
  return out + ".";
}

}  // namespace

std::string layout_words(const RungResult& result) {
  const Scenario scenario = result.scenario();
  const char* framework = name_of(scenario.training.framework);
  if (result.gpus > 1) {
    return fmt::format("{} · {}", choice_text(*result.planner, result.layout->choice), framework);
  }
  // Nothing is spread over one GPU: what is left of a layout is how it saves memory.
  const Layout& layout = scenario.layout;
  const Recompute& recompute = layout.recompute;
  std::string out = fmt::format("{} micro-batch{} of {}", scenario.micro_batches(),
                                scenario.micro_batches() == 1 ? "" : "es", layout.micro_batch);
  if (recompute.mode != RecomputeMode::kNone) {
    out += fmt::format(" · {} recompute", name_of(recompute.mode));
    if (recompute.layers > 0) out += " of " + counted_text(recompute.layers, "layer");
  }
  return fmt::format("{} · {}{}", out, framework,
                     scenario.rules.bf16_parameters || scenario.training.trains_adapters()
                         ? ""
                         : " (weights in fp32)");
}

std::string shortfall_text(const Shortfall& shortfall) {
  const double value = shortfall.value, limit = shortfall.limit;
  const bool ends = std::isfinite(value);
  switch (shortfall.constraint) {
    case Constraint::kMemory:
      return fmt::format("needs {} of {} GiB", in_gib(static_cast<ByteCount>(value)),
                         in_gib(static_cast<ByteCount>(limit)));
    case Constraint::kThroughput:
      return fmt::format("{} tokens/s where {} are demanded", number_text(value),
                         number_text(limit));
    case Constraint::kDeadline:
      return fmt::format("{} where at most {} are allowed",
                         ends ? duration_text(Seconds(value)) : "a run that never ends",
                         duration_text(Seconds(limit)));
    case Constraint::kBudget:
      return fmt::format("{} where at most {} are allowed",
                         ends ? dollars_text(value) : "a run that never ends", dollars_text(limit));
  }
  return "";
}

std::string demands_text(const AdviceReport& report) {
  const Demands& demands = report.advice.demands;
  const ByteCount memory = report.base.cluster.spec.accelerator.memory;
  const auto limit =
      static_cast<ByteCount>(static_cast<double>(memory) * (1 - demands.memory_margin));
  std::string out = fmt::format("at most {} GiB of each GPU", gib_text(limit));
  if (demands.memory_margin > 0) {
    out += fmt::format(" ({} of {} stays free)", percent_text(demands.memory_margin, 0),
                       gib_text(memory));
  }
  if (demands.tokens_per_s) {
    out += fmt::format("; {} tokens/s or more", number_text(*demands.tokens_per_s));
  }
  if (demands.tokens) {
    out += fmt::format("; {} tokens", parameters_text(static_cast<std::int64_t>(*demands.tokens)));
  }
  if (demands.deadline) out += " within " + duration_text(*demands.deadline);
  if (demands.budget) out += " for at most " + dollars_text(*demands.budget);
  if (!demands.of_speed() && !demands.budget) out += "; no speed or budget is demanded";
  return out;
}

std::string because_text(const AdviceReport& report) {
  if (!report.advice.advised) return nothing_text(report);
  std::string out = first_text(report);
  for (const std::string& more : {mode_text(report), climb_text(report)}) {
    if (!more.empty()) out += " " + more;
  }
  return out;
}

std::string rung_text(const AdviceReport& report, const RungResult& result) {
  if (result.verdict == RungVerdict::kRefused) {
    Error error = result.objections.front();
    error.file.clear();
    return "refused: " + to_string(error);
  }
  if (result.verdict == RungVerdict::kUnknown) {
    return "the time was over before a layout was found that fits";
  }
  if (!result.fits) {
    return result.layout ? memory_text(result)
                         : shortfall_text(result.shortfalls.front()) + " or more";
  }
  std::string out = speed_text(result);
  switch (result.verdict) {
    case RungVerdict::kFails:
      out = fmt::format("fits ({} GiB), but ", in_gib(result.layout->prediction.peak_device));
      for (std::size_t i = 0; i < result.shortfalls.size(); ++i) {
        out += (i > 0 ? "; " : "") + shortfall_text(result.shortfalls[i]);
      }
      break;
    case RungVerdict::kSpare:
      out += fmt::format(
          ", but {} would idle (a deadline or --min-tokens-per-s says when one is "
          "enough)",
          gpus_text(report.base.cluster.gpus() - result.gpus));
      break;
    case RungVerdict::kAbove:
    case RungVerdict::kBehind:
      if (report.advice.advised) {
        out += ", " + faster_text(speed_against(result, advised(report)));
      }
      break;
    case RungVerdict::kAdvised:
    case RungVerdict::kRefused:
    case RungVerdict::kUnknown:
      break;
  }
  return out + ": " + layout_words(result);
}

std::string no_way_out_text(const AdviceReport& report) {
  double least = std::numeric_limits<double>::infinity();
  for (const RungResult& result : report.advice.rungs) {
    for (const Shortfall& shortfall : result.shortfalls) {
      if (shortfall.constraint == Constraint::kBudget) least = std::min(least, shortfall.value);
    }
  }
  if (!std::isfinite(least)) return "no larger cluster of this kind was found to meet the demands";
  return fmt::format("more GPUs do not make a run cheaper; the cheapest rung takes {}",
                     dollars_text(least));
}

std::string way_out_text(const RungResult& way, const Scenario& base) {
  const bool tunes = way.mode != base.training.mode;
  const std::int64_t node = base.cluster.spec.gpus_per_node;
  const std::string part_of_node =
      way.gpus < node ? fmt::format(" (a node has {})", node) : std::string();
  std::string lead = way.rung->title;
  if (!way.rung->one_gpu) lead += fmt::format(" on {}{}", gpus_text(way.gpus), part_of_node);
  if (tunes)
    lead = fmt::format("if this is fine-tuning, {} (training.mode {})", lead, name_of(way.mode));
  if (!way.fits) return lead + " " + memory_text(way);
  if (!way.meets()) return lead + " fits, but " + shortfall_text(way.shortfalls.front());
  return fmt::format("{} {}: {}: {}", lead, tunes ? "fits" : "meets the demands", speed_text(way),
                     layout_words(way));
}

}  // namespace stepcast
