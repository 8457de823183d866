// SPDX-License-Identifier: Apache-2.0
#include "report/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "layout/layout.h"
#include "layout/scenario.h"
#include "layout/training.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

constexpr double kSmallLoss = 0.01;

}  // namespace

std::vector<TimePart> parts_of(const TimeParts& parts) {
  std::vector<TimePart> out;
  for (const TimePartRow& row : kTimeParts) {
    const char* among = row.kind == TimeKind::kExposed ? "exposed_" : "";
    out.push_back(
        {fmt::format("{}{}", among, row.key), row.words, parts.*row.time, row.kind, row.traffic});
  }
  return out;
}

const char* label_of_mean(const TimePart& part) {
  return part.kind == TimeKind::kBubble ? "bubble" : part.label;
}

TimeParts mean_time(const Prediction& prediction) {
  TimeParts mean;
  double ranks = 0;
  for (const RankClass& one : prediction.rank_classes) {
    const auto count = static_cast<double>(one.ranks.size());
    ranks += count;
    for (const TimePartRow& row : kTimeParts) mean.*row.time += one.time.*row.time * count;
  }
  for (const TimePartRow& row : kTimeParts) {
    mean.*row.time = mean.*row.time / std::max(ranks, 1.0);
  }
  return mean;
}

std::vector<TimePart> steps_of(const Waterfall& waterfall) {
  std::vector<TimePart> out{
      {"ideal", "ideal FLOP time", waterfall.ideal, TimeKind::kIdeal},
      {"gemm_inefficiency", "GEMM inefficiency", waterfall.gemm_inefficiency, TimeKind::kCompute},
      {"attention_inefficiency", "attention inefficiency", waterfall.attention_inefficiency,
       TimeKind::kCompute},
      {"memory_bound", "memory-bound kernels", waterfall.memory_bound, TimeKind::kCompute},
      {"imbalance", "stage imbalance", waterfall.imbalance, TimeKind::kImbalance},
      {"recompute", "recompute", waterfall.recompute, TimeKind::kRecompute},
      {"optimizer", "optimizer", waterfall.optimizer, TimeKind::kOptimizer}};
  // The steps above tell what the rank computes.
  for (const TimePart& part : parts_of(waterfall.rest)) {
    const bool computes = part.kind == TimeKind::kCompute || part.kind == TimeKind::kRecompute ||
                          part.kind == TimeKind::kOptimizer;
    if (!computes) out.push_back(part);
  }
  return out;
}

std::vector<TimePart> largest_losses(const Waterfall& waterfall, Seconds total, std::size_t count) {
  std::vector<TimePart> losses = steps_of(waterfall);
  losses.erase(losses.begin());  // the ideal
  std::erase_if(losses, [&](const TimePart& part) { return part.time < kSmallLoss * total; });
  std::stable_sort(losses.begin(), losses.end(),
                   [](const TimePart& a, const TimePart& b) { return a.time > b.time; });
  if (losses.size() > count)
    losses.erase(losses.begin() + static_cast<std::ptrdiff_t>(count), losses.end());
  return losses;
}

int memory_categories(const Prediction& prediction) {
  static_assert(static_cast<int>(MemoryCategory::kOuter) == kMemoryCategories - 1);
  return prediction.outer.islands > 0 ? kMemoryCategories : kMemoryCategories - 1;
}

std::vector<const RankClass*> fullest_by_stage(const Prediction& prediction) {
  std::map<std::int32_t, const RankClass*> fullest;
  for (const RankClass& rank_class : prediction.rank_classes) {
    const RankClass*& held = fullest[rank_class.stage];
    if (!held || device_bytes(rank_class) > device_bytes(*held)) held = &rank_class;
  }
  std::vector<const RankClass*> out;
  for (const auto& [stage, rank_class] : fullest) out.push_back(rank_class);
  return out;
}

std::int32_t lowest_rank(const RankClass& rank_class) {
  return std::min_element(rank_class.ranks.begin(), rank_class.ranks.end())->value;
}

std::vector<bool> classes_of_one_pipeline(const Prediction& prediction) {
  std::map<std::int32_t, std::size_t> of_stage;
  for (std::size_t c = 0; c < prediction.rank_classes.size(); ++c) {
    const RankClass& rank_class = prediction.rank_classes[c];
    const auto [at, added] = of_stage.emplace(rank_class.stage, c);
    if (!added && lowest_rank(rank_class) < lowest_rank(prediction.rank_classes[at->second])) {
      at->second = c;
    }
  }
  std::vector<bool> out(prediction.rank_classes.size(), false);
  for (const auto& [stage, c] : of_stage) out[c] = true;
  return out;
}

const char* flop_count_text(FlopCount count) {
  return count == FlopCount::kFull ? "full attention" : "causal attention";
}

Verdict verdict_of(const Prediction& prediction) {
  const ByteCount low = std::min(prediction.peak_device_low, prediction.peak_device);
  const ByteCount high = std::max(prediction.peak_device_high, prediction.peak_device);
  if (low > prediction.device_memory) return Verdict::kDoesNotFit;
  return high > prediction.device_memory ? Verdict::kTight : Verdict::kFits;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kTight:
      return "tight";
    case Verdict::kDoesNotFit:
      return "does not fit";
  }
  return "";
}

std::string layout_text(const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  std::string out = fmt::format("tp {}", layout.tp);
  if (layout.cp > 1) out += fmt::format(" · cp {}", layout.cp);
  if (layout.ep > 1) out += fmt::format(" · ep {}", layout.ep);
  out += fmt::format(" · pp {}", layout.pp);
  if (layout.virtual_stages > 1) out += fmt::format(" · vpp {}", layout.virtual_stages);
  const std::int64_t micro_batches = scenario.micro_batches();
  out += fmt::format(" · dp {} · zero {} · {} micro-batch{} of {}", layout.dp, layout.zero,
                     micro_batches, micro_batches == 1 ? "" : "es", layout.micro_batch);
  // On one stage it still decides how many micro-batches are alive at once.
  if (layout.pp > 1 || layout.schedule != Layout{}.schedule) {
    out += fmt::format(" · {}", name_of(layout.schedule));
  }
  if (layout.sequence_parallel) out += " · sequence parallel";
  if (layout.recompute.mode != RecomputeMode::kNone) {
    out += fmt::format(" · {} recompute", name_of(layout.recompute.mode));
    if (layout.recompute.layers > 0) {
      out += fmt::format(" of {} per chunk", counted_text(layout.recompute.layers, "layer"));
    }
    if (layout.recompute.every > 1) {
      out += fmt::format(" of 1 in {} layers", layout.recompute.every);
    }
  }
  return out;
}

std::string model_and_layout_text(const Scenario& scenario) {
  const ParameterCount count = count_parameters(scenario.model);
  const auto text = [](std::int64_t parameters) {
    const auto value = static_cast<double>(parameters);
    return parameters >= 1'000'000'000 ? fmt::format("{:.4g}B", value / 1e9)
                                       : fmt::format("{:.4g}M", value / 1e6);
  };
  std::string out = text(count.total()) + " parameters";
  if (scenario.model.moe) out += fmt::format(", {} active", text(count.active));
  return out + " · " + layout_text(scenario);
}

namespace {

// The parts of a headline; those that scenarios do not share are empty.
struct HeadlineParts {
  std::string model, gpus, cluster, accelerator, framework, precision, mode, sequences, length;
};

HeadlineParts headline_parts(const Scenario& scenario) {
  const Training& training = scenario.training;
  HeadlineParts out;
  out.model = scenario.model.name.empty() ? "model" : scenario.model.name;
  out.gpus = counted_text(scenario.whole_cluster().gpus(), "GPU");
  if (scenario.all_islands) out.gpus += fmt::format(" in {} islands", scenario.islands());
  out.cluster = scenario.cluster.spec.name;
  out.accelerator = scenario.cluster.spec.accelerator.title;
  for (const Accelerator& other : scenario.cluster.spec.other_accelerators) {
    out.accelerator += " and " + other.title;
  }
  out.framework = name_of(training.framework);
  out.precision = training.precision_name();
  if (training.trains_adapters()) {
    out.mode = fmt::format("{} rank {}", training.mode == TrainingMode::kLora ? "LoRA" : "QLoRA",
                           training.lora_rank);
  }
  out.sequences = counted_text(training.global_batch, "sequence");
  if (scenario.all_islands) out.sequences += " an island";
  out.length = counted_text(training.sequence_length, "token");
  return out;
}

// Both words with `between` them, or the one that there is.
std::string joined(const std::string& a, const char* between, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + between + b;
}

}  // namespace

std::string headline(const std::vector<const Scenario*>& scenarios) {
  constexpr std::string HeadlineParts::*kParts[] = {
      &HeadlineParts::model,       &HeadlineParts::gpus,      &HeadlineParts::cluster,
      &HeadlineParts::accelerator, &HeadlineParts::framework, &HeadlineParts::precision,
      &HeadlineParts::mode,        &HeadlineParts::sequences, &HeadlineParts::length};
  HeadlineParts common = headline_parts(*scenarios.front());
  for (const Scenario* scenario : scenarios) {
    const HeadlineParts other = headline_parts(*scenario);
    for (const auto part : kParts) {
      if (common.*part != other.*part) (common.*part).clear();
    }
  }
  std::string hardware = joined(common.gpus, " of ", common.cluster);
  if (!common.accelerator.empty()) {
    hardware = hardware.empty() ? common.accelerator
                                : fmt::format("{} ({})", hardware, common.accelerator);
  }
  const std::string training =
      joined(joined(common.framework, " ", common.precision), " ", common.mode);
  std::string batch = common.sequences;
  if (!common.length.empty())
    batch = (batch.empty() ? "sequences" : batch) + " of " + common.length;
  return joined(joined(joined(common.model, " on ", hardware), ", ", training), ", ", batch);
}

std::string headline(const Scenario& scenario) {
  return headline(std::vector<const Scenario*>{&scenario});
}

}  // namespace stepcast
