// SPDX-License-Identifier: Apache-2.0
// The other keys have to go with these: framework, precision, degrees, schedule, batch.
#include <algorithm>
#include <numeric>

#include "generate/sketch.h"
#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "schedule/schedule.h"

namespace stepcast::generate {
namespace {

constexpr std::int64_t kMostReplayed = 512;  // passes of a stage, so that a forecast is quick

void draw_precision(Draw& draw, Sketch& s) {
  std::vector<DataType> offered;
  const Accelerator& device = s.cluster.spec.accelerator;
  for (const auto& [type, rate] : device.dense_peak) {
    const ArchitectureTraits& traits = traits_of(device.architecture);
    const bool fits = s.framework->has_fp4 && (traits.has_nvfp4 || traits.has_mxfp4);
    if (type != DataType::kFp4) {
      offered.push_back(type);
    } else if (fits) {
      offered.insert(offered.end(), 3, type);  // few devices have it
    }
  }
  if (offered.empty()) return;
  if (s.fuses_experts) std::erase_if(offered, [](DataType type) { return !is_scaled(type); });
  s.precision = draw.of(offered);
  const bool usual = std::ranges::find(offered, DataType::kBf16) != offered.end();
  if (usual && draw.chance(0.4)) s.precision = DataType::kBf16;
  if (s.precision != DataType::kBf16 || draw.chance(0.5)) {
    const bool mx = s.precision == DataType::kFp4 && traits_of(device.architecture).has_mxfp4;
    s.set("training.precision", mx ? kMxfp4 : name_of(s.precision));
  }
}

// Divides heads, key-value heads (or is a multiple of them), and the widths of all products.
bool cuts_model(const Model& m, std::int64_t tp) {
  const bool heads = m.heads % tp == 0 && (m.kv_heads % tp == 0 || tp % m.kv_heads == 0);
  return heads && m.ffn % tp == 0 && (!m.moe || m.moe->shared_ffn % tp == 0);
}

// Ranks that share a sequence.
std::int64_t context_ranks(Draw& draw, std::int64_t ranks) {
  if (draw.chance(0.7)) return 1;
  return draw.divisor(ranks, 8);
}

void draw_grid(Draw& draw, Sketch& s) {
  std::int64_t ranks = s.cluster.gpus();
  const auto take = [&](std::int64_t& degree, std::int64_t value) {
    degree = value;
    ranks /= value;
  };
  if (draw.chance(0.6)) {
    take(s.tp, draw.divisor(ranks, 16, [&](std::int64_t tp) { return cuts_model(s.model, tp); }));
  }
  take(s.cp, context_ranks(draw, ranks));
  if (draw.chance(0.6)) {
    take(s.pp, draw.divisor(ranks, std::min<std::int64_t>(16, s.model.layers),
                            [](std::int64_t pp) { return pp > 1; }));
  }
  s.dp = ranks;
  const std::pair<const char*, std::int64_t> degrees[] = {
      {"layout.tp", s.tp}, {"layout.cp", s.cp}, {"layout.pp", s.pp}};
  for (const auto& [path, degree] : degrees) {
    if (degree > 1 || draw.chance(0.2)) s.set(path, degree);
  }
  if (draw.chance(0.3)) s.set("layout.dp", s.dp);
}

// DeepSpeed shards gradients on no pipeline, and parameters beside no experts on other ranks.
bool refuses_by_zero(const Sketch& s) { return s.framework->check_zero != nullptr; }

void draw_zero(Draw& draw, Sketch& s) {
  s.zero = s.framework->zero;
  if (draw.chance(0.6)) {
    const int most = s.pp > 1 && refuses_by_zero(s) ? 1 : 3;
    s.zero = static_cast<int>(draw.below(most + 1));
    if (s.zero == 1 && !s.framework->has_zero_1) s.zero = 0;
    s.set("layout.zero", s.zero);
  }
}

void draw_expert_grid(Draw& draw, Sketch& s) {
  s.etp = s.tp;
  if (!s.model.moe || (s.zero == 3 && refuses_by_zero(s)) || draw.chance(0.2)) return;
  const std::int64_t ranks = s.tp * s.cp * s.dp;
  s.ep = draw.divisor(std::gcd(ranks, s.model.moe->experts), 64);
  s.set("layout.ep", s.ep);
  if ((s.dp * s.cp) % s.ep != 0) s.etp = 1;
  if (draw.chance(0.3)) {
    s.etp = draw.divisor(std::gcd(ranks / s.ep, s.model.moe->ffn), 8);
    s.set("layout.etp", s.etp);
  }
}

bool takes(const Schedule& schedule, const Sketch& s) {
  if (!schedule.is_made()) return false;
  const bool several = schedule.chunks == Schedule::kSeveral;
  const bool staged = several || schedule.splits_backward ||
                      schedule.placement == Placement::kFolded ||
                      schedule.chunks == Schedule::kOneOrTwo;
  if (s.pp == 1) return !staged;
  if (schedule.placement == Placement::kMirrored) {
    return s.pp % 2 == 0 && s.pp <= s.model.layers && s.zero <= 1;
  }
  const std::int64_t chunks = std::max<std::int64_t>(several ? 2 : 1, schedule.chunks);
  return chunks * s.pp <= s.model.layers;
}

void draw_schedule(Draw& draw, Sketch& s) {
  s.schedule = &rules_of(default_schedule());
  std::vector<const Schedule*> fitting;
  for (const Schedule* schedule : schedules()) {
    if (!takes(*schedule, s)) continue;
    // Few models and grids take these.
    const bool is_rare = schedule->placement == Placement::kMirrored ||
                         schedule->placement == Placement::kFolded ||
                         schedule->chunks == Schedule::kSeveral;
    fitting.insert(fitting.end(), is_rare ? 3 : 1, schedule);
  }
  if (draw.chance(s.pp > 1 ? 0.9 : 0.3)) {
    s.schedule = draw.of(fitting);
    s.set("layout.schedule", s.schedule->name);
  }
  const std::int64_t most = s.model.layers / s.pp;
  if (s.schedule->chunks == Schedule::kSeveral) {
    s.chunks = 2 + draw.below(std::min<std::int64_t>(most, 4) - 1);
    s.set("layout.virtual_stages", s.chunks);
  } else if (s.schedule->chunks == Schedule::kOneOrTwo) {
    s.chunks = most >= 2 ? draw.number({1, 2}) : 1;
    s.set("layout.virtual_stages", s.chunks);
  } else {
    s.chunks = s.schedule->chunks;
    if (draw.chance(0.2)) s.set("layout.virtual_stages", s.chunks);
  }
}

void draw_batch(Draw& draw, Sketch& s) {
  std::int64_t m = draw.number({1, 1, 2, 3, 4, 6, 8, 16});
  if (s.schedule->whole_groups) m = s.pp * draw.number({1, 2, 3});
  m = std::max(m, s.schedule->least_rounds * s.pp);
  while (m > s.pp && m * s.pp * s.chunks > kMostReplayed) m -= s.pp;
  if (s.schedule->whole_groups && draw.chance(0.9)) {
    const std::int64_t rest = std::max(s.pp, m - s.pp);
    const std::int64_t group = draw.number({s.pp, rest, m});  // a last group of pp, or none
    s.set("layout.micro_batch_group", group);
  }
  s.micro_batches = m;
  const std::int64_t micro_batch = draw.number({1, 1, 2, 4});
  if (micro_batch > 1 || draw.chance(0.2)) s.set("layout.micro_batch", micro_batch);
  s.set("training.global_batch", micro_batch * s.dp * m);
}

// Whole slices for each rank that shares a sequence.
void draw_sequence(Draw& draw, Sketch& s) {
  s.sequence_parallel = s.tp > 1;
  if (s.tp > 1 && !s.model.moe && draw.chance(0.4)) {
    s.sequence_parallel = draw.chance(0.5);
    s.set("layout.sequence_parallel", s.sequence_parallel);
  } else if (draw.chance(0.1)) {
    s.set("layout.sequence_parallel", true);
  }
  const std::int64_t slices = (s.cp > 1 ? 2 * s.cp : 1) * s.tp;
  std::int64_t length = draw.number({16, 64, 128, 512, 1024, 2048, 2048, 4096, 8192});
  if (s.model.position == Position::kLearned) length = std::min(length, s.model.max_positions);
  length = std::max<std::int64_t>(1, length / slices) * slices;
  s.set("training.sequence_length", length);
}

}  // namespace

void draw_degrees(Draw& draw, Sketch& s) {
  if (s.framework == nullptr) {
    std::vector<const FrameworkTraits*> all(frameworks().begin(), frameworks().end());
    if (s.fuses_experts) std::erase_if(all, [](const auto* f) { return !f->fuses_experts; });
    s.framework = draw.of(all);
  }
  s.set("training.framework", s.framework->name);
  draw_precision(draw, s);
  draw_grid(draw, s);
  draw_zero(draw, s);
  draw_expert_grid(draw, s);
  draw_schedule(draw, s);
  draw_batch(draw, s);
  draw_sequence(draw, s);
}

}  // namespace stepcast::generate
