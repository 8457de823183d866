// SPDX-License-Identifier: Apache-2.0
#include "report/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/number_text.h"

namespace stepcast {
namespace {

constexpr double kTightShare = 0.80;
constexpr double kSmallLoss = 0.01;

}  // namespace

std::vector<TimePart> parts_of(const TimeParts& parts) {
  return {{"compute", "compute", parts.compute},
          {"recompute", "recompute", parts.recompute},
          {"optimizer", "optimizer", parts.optimizer},
          {"exposed_tp", "exposed tensor parallel", parts.exposed_tp},
          {"exposed_cp", "exposed context parallel", parts.exposed_cp},
          {"exposed_ep", "exposed expert parallel", parts.exposed_ep},
          {"exposed_pp", "exposed pipeline transfers", parts.exposed_pp},
          {"exposed_dp", "exposed data parallel", parts.exposed_dp},
          {"exposed_offload", "exposed offload", parts.exposed_offload},
          {"bubble", "bubble of this rank", parts.bubble},
          {"other", "other (host, waiting)", parts.other}};
}

TimeParts mean_time(const Prediction& prediction) {
  constexpr Seconds TimeParts::*kParts[] = {
      &TimeParts::compute,    &TimeParts::recompute,  &TimeParts::optimizer,
      &TimeParts::exposed_tp, &TimeParts::exposed_cp, &TimeParts::exposed_ep,
      &TimeParts::exposed_pp, &TimeParts::exposed_dp, &TimeParts::exposed_offload,
      &TimeParts::bubble,     &TimeParts::other};
  TimeParts mean;
  double ranks = 0;
  for (const RankClass& one : prediction.rank_classes) {
    const auto count = static_cast<double>(one.ranks.size());
    ranks += count;
    for (const auto part : kParts) mean.*part += one.time.*part * count;
  }
  for (const auto part : kParts) mean.*part = mean.*part / std::max(ranks, 1.0);
  return mean;
}

std::vector<TimePart> steps_of(const Waterfall& waterfall) {
  std::vector<TimePart> out{
      {"ideal", "ideal FLOP time", waterfall.ideal},
      {"gemm_inefficiency", "GEMM inefficiency", waterfall.gemm_inefficiency},
      {"attention_inefficiency", "attention inefficiency", waterfall.attention_inefficiency},
      {"memory_bound", "memory-bound kernels", waterfall.memory_bound},
      {"imbalance", "stage imbalance", waterfall.imbalance},
      {"recompute", "recompute", waterfall.recompute},
      {"optimizer", "optimizer", waterfall.optimizer}};
  for (const TimePart& part : parts_of(waterfall.rest)) {
    const std::string_view key = part.key;
    if (key != "compute" && key != "recompute" && key != "optimizer") out.push_back(part);
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
  if (!prediction.fits) return Verdict::kDoesNotFit;
  const double share = static_cast<double>(prediction.peak_device) /
                       static_cast<double>(std::max<ByteCount>(prediction.device_memory, 1));
  return share > kTightShare ? Verdict::kTight : Verdict::kFits;
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

std::string headline(const Scenario& scenario) {
  const Training& training = scenario.training;
  const std::string model = scenario.model.name.empty() ? "model" : scenario.model.name;
  std::string mode;
  if (training.trains_adapters()) {
    mode = fmt::format(" {} rank {}", training.mode == TrainingMode::kLora ? "LoRA" : "QLoRA",
                       training.lora_rank);
  }
  return fmt::format("{} on {} of {} ({}), {} {}{}, {} of {}", model,
                     counted_text(scenario.cluster.gpus(), "GPU"), scenario.cluster.spec.name,
                     scenario.cluster.spec.accelerator.title, name_of(training.framework),
                     name_of(training.precision), mode,
                     counted_text(training.global_batch, "sequence"),
                     counted_text(training.sequence_length, "token"));
}

}  // namespace stepcast
