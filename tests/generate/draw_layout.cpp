// SPDX-License-Identifier: Apache-2.0
// The keys of `layout` beyond its degrees and its schedule.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/atomic_file.h"
#include "generate/sketch.h"
#include "layout/choices.h"
#include "layout/pipeline.h"
#include "schedule/schedule.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

void draw_context_method(Draw& draw, Sketch& s) {
  const bool windowed = s.model.attention_window > 0;  // which no ring takes
  if (s.cp == 1 || (!windowed && draw.chance(0.4))) return;
  std::vector<ContextMethod> offered(s.framework->context_methods.begin(),
                                     s.framework->context_methods.end());
  if (offered.empty()) offered = {ContextMethod::kRing, ContextMethod::kAllGather};
  if (windowed) {
    std::erase(offered, ContextMethod::kRing);
    std::erase(offered, ContextMethod::kHierarchical);
  }
  if (!offered.empty()) s.set("layout.cp_method", name_of(draw.of(offered)));
}

bool takes_operations(const Sketch& s) { return s.framework->recomputes_operations && !s.unfused; }

json recomputed_modules(Draw& draw, const Sketch& s) {
  const std::string operations = name_of(RecomputedModule::kOperations);
  if (takes_operations(s) && draw.chance(0.4)) return {operations};
  json out = json::array();
  for (const std::string& module : recomputed_module_names()) {
    if (module != operations && draw.chance(0.3)) out.push_back(module);
  }
  if (out.empty()) out.push_back(name_of(RecomputedModule::kCoreAttention));
  return out;
}

void draw_recompute(Draw& draw, Sketch& s) {
  if (draw.chance(0.4)) return;
  const std::string mode = draw.of(recompute_mode_names());
  s.full_recompute = mode == name_of(RecomputeMode::kFull);
  if (draw.chance(0.5)) return s.set("layout.recompute", mode);
  json out = {{"mode", mode}};
  if (mode != name_of(RecomputeMode::kNone)) {
    if (draw.chance(0.4)) out["layers"] = 1 + draw.below(s.model.layers);
    if (draw.chance(0.4)) out["every"] = 1 + draw.below(std::min<std::int64_t>(3, s.model.layers));
  }
  if (mode == name_of(RecomputeMode::kSelective)) out["modules"] = recomputed_modules(draw, s);
  s.set("layout.recompute", out);
}

void draw_order(Draw& draw, Sketch& s) {
  if (!draw.chance(0.25)) return;
  std::vector<std::string> words = {"tp", "cp", "ep", "dp", "pp"};
  for (std::size_t i = words.size(); i-- > 1;) {
    std::swap(words[i], words[static_cast<std::size_t>(draw.below(static_cast<int>(i) + 1))]);
  }
  s.set("layout.order", fmt::format("{}", fmt::join(words, "-")));
}

void draw_overlap(Draw& draw, Sketch& s) {
  const bool strict = s.framework->check_overlap != nullptr;
  if (draw.chance(0.4)) {
    const bool reduces = draw.chance(0.5);
    s.set("layout.overlap.grad_reduce", reduces);
    const bool gathers = draw.chance(0.5) && (!strict || (reduces && s.zero > 0));
    s.set("layout.overlap.param_gather", gathers);
  }
  if (draw.chance(0.35)) {
    s.set("layout.overlap.tp", draw.chance(0.6) && (!strict || s.sequence_parallel));
  }
  if (draw.chance(0.35)) s.set("layout.overlap.pp", draw.chance(0.6));
}

bool exchanges_beside(const Sketch& s) {
  const bool passes = s.schedule->pairs != Pairs::kNone && (s.pp == 1 || s.schedule->chunks != 1);
  return s.model.moe && s.framework->pairs_passes && s.ep > 1 && passes && s.zero <= 1 &&
         s.model.mtp_layers <= 1 && s.model.moe->dispatcher != MoeDispatcher::kAllGather;
}

void draw_expert_overlap(Draw& draw, Sketch& s) {
  if (!s.model.moe || !draw.chance(0.5)) return;
  const bool beside = exchanges_beside(s) && draw.chance(0.7);
  s.set("layout.overlap.ep", beside);
  s.pairs_exchanges = beside;
  if (!beside) return;
  if (s.pp > 1) s.set("layout.overlap.pp", true);
  s.set("layout.recompute", "none");
}

// Behind the drawing of experts' exchanges, which it does not go with.
void draw_deferred_head(Draw& draw, Sketch& s) {
  const bool can = s.pp > 1 && s.framework->defers_head && !s.schedule->splits_backward &&
                   s.schedule->orders == nullptr && s.zero <= 1 && !s.model.moe &&
                   s.model.mtp_layers == 0;
  if (!can || !draw.chance(0.5)) return;
  if (draw.chance(0.3)) return s.set("layout.defer_head_wgrad", "all");
  s.set("layout.defer_head_wgrad", draw.below(6));
}

// They stand apart on a pipeline that does not come back, with whole gradients.
void draw_modules(Draw& draw, Sketch& s) {
  const bool straight = !s.schedule->from_file && s.schedule->chunks <= 1 &&
                        s.schedule->pairs == Pairs::kNone && s.schedule->orders == nullptr;
  const bool can = s.model.mtp_layers > 0 && s.pp > 1 && straight && !s.pairs_exchanges &&
                   s.zero <= 1 && !(s.zero == 0 && !s.framework->has_zero_1);
  if (can ? draw.chance(0.7) : draw.chance(0.02)) s.set("layout.mtp_apart", can);
}

void draw_offload(Draw& draw, Sketch& s) {
  if (!draw.chance(0.3)) return;
  const auto& can = s.framework->offload;
  const bool parts = can.parts || (can.sharded_parts && s.zero == 3);
  const double share = parts && draw.chance(0.5) ? 0.5 : 1;
  const bool parameters =
      can.parameters && (s.zero == 3 || can.together) && share == 1 && draw.chance(0.5);
  // States that go together have parameters that are sharded.
  const bool fits = s.zero >= 1 && (!can.together || parameters);
  if (fits && draw.chance(0.6)) {
    s.offloads = true;
    s.set("layout.offload.optimizer", share);
    if (parameters) s.set("layout.offload.parameters", 1);
    if (draw.chance(0.3)) s.set("layout.overlap.offload", draw.chance(0.7));
    if (draw.chance(0.3)) s.set("training.host_threads", draw.number({0, 1, 4}));
    const bool on_disks =
        can.disks && s.cluster.spec.disk_read.value() > 0 && s.cluster.spec.disk_write.value() > 0;
    if (on_disks && draw.chance(0.5)) s.set("layout.offload.optimizer_device", "nvme");
    if (on_disks && parameters && draw.chance(0.5)) {
      s.set("layout.offload.parameter_device", "nvme");
    }
  }
  if (!s.offloads && draw.chance(0.2)) {  // as it is without a word
    s.set("layout.offload.optimizer_device", "cpu");
    s.set("layout.offload.parameter_device", "cpu");
  }
  s.set("layout.offload.activations", 0.25 * static_cast<double>(draw.below(5)));
}

void draw_chunks(Draw& draw, Sketch& s) {
  const bool mirrored = s.schedule->placement == Placement::kMirrored;
  const std::int64_t chunks = mirrored ? s.pp : s.pp * s.chunks;
  if (draw.chance(0.2)) {
    s.set("layout.account_for_embedding", draw.chance(0.5));
    s.set("layout.account_for_loss", draw.chance(0.5));
  } else if (draw.chance(0.2)) {
    std::vector<std::int64_t> list(static_cast<std::size_t>(chunks), 1);
    for (std::int64_t left = s.model.layers - chunks; left > 0; --left) {
      ++list[static_cast<std::size_t>(draw.below(chunks))];
    }
    s.set("layout.stage_layers", list);
  }
}

void draw_shard_group(Draw& draw, Sketch& s) {
  if (!draw.chance(0.2)) return;
  if (s.schedule->placement == Placement::kMirrored || draw.chance(0.3)) {
    return s.set("layout.shard_group", "all");
  }
  s.set("layout.shard_group", draw.divisor(s.dp * s.cp, 64));
}

// An order of passes as a file of the temporary folder, whose name says what is in it.
void draw_schedule_file(Draw& draw, Sketch& s) {
  const bool static_order = s.schedule->order != nullptr && !s.states("layout.micro_batch_group");
  if (s.pp == 1 || !static_order || !draw.chance(0.15)) return;
  const Pipeline pipeline{s.pp, s.chunks, s.micro_batches, s.schedule->placement};
  const ScheduleKind kind = schedule_named(s.schedule->name);
  const std::string folder = std::filesystem::temp_directory_path() / "stepcast-generated";
  std::filesystem::create_directories(folder);
  const std::string path = fmt::format("{}/{}-p{}-v{}-m{}.csv", folder, s.schedule->name, s.pp,
                                       s.chunks, s.micro_batches);
  if (!write_file_atomically(path, to_csv(pipeline, make_orders(kind, pipeline)))) return;
  s.set("layout.schedule", "file:" + path);
  s.set("layout.virtual_stages", s.chunks);
}

}  // namespace

void draw_layout(Draw& draw, Sketch& s) {
  draw_context_method(draw, s);
  draw_recompute(draw, s);
  draw_order(draw, s);
  draw_overlap(draw, s);
  draw_expert_overlap(draw, s);
  draw_deferred_head(draw, s);
  draw_modules(draw, s);
  draw_offload(draw, s);
  draw_chunks(draw, s);
  draw_shard_group(draw, s);
  draw_schedule_file(draw, s);
}

namespace {

// The kernels of experts that activate and cast, and what they leave in pages.
void draw_fused_experts(Draw& draw, Sketch& s) {
  if (!s.fuses_experts) return;
  const std::string layout = s.file["layout"].dump();
  const bool alone = layout.find("moe_act") != std::string::npos;
  const bool again = s.full_recompute || layout.find("\"moe\"") != std::string::npos;
  const bool can = !s.adapters && !alone;
  s.set("model.moe.fused_mlp", can);
  const Moe& moe = *s.model.moe;
  const bool hybrid = moe.dispatcher == MoeDispatcher::kHybridEp && moe.capacity_factor == 0;
  if (!can || again || !hybrid || draw.chance(0.1)) return;
  s.set("model.moe.rank_capacity_factor", 3);
  s.set("model.moe.stash_factor", 2.5);
}

}  // namespace

// Experts do this beside their own exchanges, and inside their kernels.
void draw_within_exchanges(Draw& draw, Sketch& s) {
  if (!s.model.moe) return;
  draw_fused_experts(draw, s);
  if (s.pairs_exchanges) {
    s.set("layout.overlap.expert_wgrad", draw.chance(0.5));
  } else if (draw.chance(0.2)) {
    s.set("layout.overlap.expert_wgrad", false);
    s.set("layout.overlap.shared_experts", false);
  } else if (s.model.moe->shared_ffn > 0 && s.framework->hides_in_exchanges && s.ep > 1 &&
             s.model.moe->dispatcher == MoeDispatcher::kAllToAll) {
    s.set("layout.overlap.shared_experts", draw.chance(0.5));
  }
}

}  // namespace stepcast::generate
