// SPDX-License-Identifier: Apache-2.0
#include "plan/launchable.h"

#include <fmt/format.h>

#include <utility>

#include "layout/framework.h"
#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "layout/training_values.h"

namespace stepcast {
namespace {

constexpr const char* kNoOverlap = "data parallelism without overlap under adapters";
constexpr const char* kStateIt = "state it to search it all the same";

class Launchable {
 public:
  Launchable(const Scenario& scenario, const Stated& asked, Findings& findings)
      : scenario_(scenario),
        layout_(scenario.layout),
        traits_(traits_of(scenario.training.framework)),
        asked_(asked),
        findings_(findings) {}

  void check() {
    check_releases();
    check_zero();
    check_adapters();
    check_pipeline();
    check_tensor_overlap();
    check_recomputation();
    check_domain();
  }

 private:
  bool searches(const KeyPath& path) const {
    return !asked_.has(path.text()) && findings_.trusts({path});
  }

  // `uses`: the layout uses something that the framework has since that month.
  void demand(Release since, bool uses, const KeyPath& path, const char* what) {
    if (!uses || scenario_.training.release.has(since) || !searches(path)) return;
    findings_.illegal(std::string(path.text()),
                      fmt::format("{} has had {} since {}, and the release is of {}", traits_.name,
                                  what, to_string(since), to_string(scenario_.training.release)),
                      kStateIt);
  }

  void rare(const KeyPath& path, const std::string& what) {
    if (!searches(path)) return;
    findings_.illegal(std::string(path.text()),
                      fmt::format("{} with framework {} is rare", what, traits_.name), kStateIt);
  }

  void check_zero() {
    const bool alone = layout_.dp * layout_.cp == 1;
    const bool replicates = layout_.zero < traits_.least_proposed_zero && !alone;
    const bool shards_alone = layout_.zero > 0 && alone && traits_.shards_among_several;
    if (replicates || shards_alone || layout_.zero > traits_.most_proposed_zero) {
      rare("layout.zero", fmt::format("zero {}", layout_.zero));
    } else if (layout_.pp > 1 && layout_.zero > traits_.most_proposed_zero_on_pipelines) {
      rare("layout.zero", fmt::format("zero {} on a pipeline", layout_.zero));
    } else if (layout_.tp > 1 && layout_.zero > traits_.most_proposed_zero_with_tensor) {
      const std::string what = fmt::format("zero {} with tensor parallelism", layout_.zero);
      if (searches("layout.zero")) {
        rare("layout.zero", what);
      } else {
        rare("layout.tp", what);
      }
    }
  }

  // The trainers of adapters that have launch files shard over data parallel ranks and no others.
  // Whoever asks for another framework has a program of their own for it.
  void check_adapters() {
    const bool own = asked_.has("training.framework") && traits_.proposes_spread_adapters;
    if (!scenario_.training.trains_adapters() || own) return;
    const std::pair<KeyPath, std::int64_t> axes[] = {{KeyPath("layout.tp"), layout_.tp},
                                                     {KeyPath("layout.pp"), layout_.pp},
                                                     {KeyPath("layout.cp"), layout_.cp},
                                                     {KeyPath("layout.ep"), layout_.ep}};
    for (const auto& [path, ranks] : axes) {
      if (ranks == 1 || !searches(path)) continue;
      findings_.illegal(std::string(path.text()),
                        fmt::format("{} ranks that train adapters have no launch files, as PEFT "
                                    "and torchtune shard over data parallel ranks alone",
                                    ranks),
                        "state it, or training.framework, to search it all the same");
    }
    const Recompute& again = layout_.recompute;
    const bool whole = again.mode == RecomputeMode::kFull && again.layers == 0 && again.every == 1;
    if (again.mode != RecomputeMode::kNone && !whole) {
      rare("layout.recompute", "recomputation of a part of each layer under adapters");
    }
    if (layout_.shard_group > 0) rare("layout.shard_group", "groups of ranks that train adapters");
    if (layout_.dp == 1) return;
    if (!layout_.overlap.grad_reduce) rare("layout.overlap.grad_reduce", kNoOverlap);
    if (!layout_.overlap.param_gather) rare("layout.overlap.param_gather", kNoOverlap);
  }

  void check_tensor_overlap() {
    if (layout_.overlap.tp && !traits_.proposes_tensor_overlap) {
      rare("layout.overlap.tp", "overlapped tensor parallelism");
    }
    // torchtitan refuses it.
    if (layout_.overlap.tp && !scenario_.training.compile &&
        scenario_.training.framework == framework_named("fsdp")) {
      rare("layout.overlap.tp", "overlapped tensor parallelism without training.compile");
    }
  }

  void check_recomputation() {
    if (layout_.recompute.layers > 0 && !traits_.proposes_recomputed_layers) {
      rare("layout.recompute", "recomputation of some layers");
    }
  }

  void check_pipeline() {
    if (layout_.pp == 1) return;
    if (layout_.virtual_stages > traits_.most_proposed_virtual_stages) {
      rare("layout.virtual_stages",
           fmt::format("a pipeline of {} virtual stages", layout_.virtual_stages));
    }
  }

  void check_releases() {
    if (scenario_.training.release.newest()) return;
    const FrameworkTraits& has = traits_;
    const Recompute& again = layout_.recompute;
    demand(has.tensor_parallel_since, layout_.tp > 1, "layout.tp", "tensor parallelism");
    demand(has.pipeline_since, layout_.pp > 1, "layout.pp", "pipelines");
    demand(has.interleaving_since, layout_.virtual_stages > 1, "layout.schedule",
           "interleaved stages");
    demand(has.selective_recompute_since, again.mode == RecomputeMode::kSelective,
           "layout.recompute", "selective recomputation");
    demand(has.partial_recompute_since, again.mode == RecomputeMode::kFull && again.layers > 0,
           "layout.recompute", "recomputation of some layers");
    demand(has.sequence_parallel_since, layout_.sequence_parallel, "layout.sequence_parallel",
           "sequence parallelism");
    demand(has.sharded_optimizer_since, layout_.zero > 0, "layout.zero", "a sharded optimizer");
    demand(has.data_overlap_since, layout_.overlap.grad_reduce, "layout.overlap.grad_reduce",
           "overlapped gradient reduction");
    demand(has.data_overlap_since, layout_.overlap.param_gather, "layout.overlap.param_gather",
           "overlapped parameter gathers");
    demand(has.tensor_overlap_since, layout_.overlap.tp, "layout.overlap.tp",
           "overlapped tensor parallelism");
  }

  std::int64_t domain_gpus() const { return scenario_.cluster.spec.gpus_per_domain(); }

  // Every layer waits for its tensor parallel collectives several times: experts keep them where
  // GPUs reach each other without the network, and the overlapped kinds exist only there.
  void check_domain() {
    if (layout_.tp == 1) return;
    if (leaves_domain(1)) {
      if (searches("layout.tp")) {
        findings_.illegal("layout.tp",
                          fmt::format("{} tensor parallel ranks leave the {} GPUs that reach each "
                                      "other without the network",
                                      layout_.tp, domain_gpus()),
                          kStateIt);
      }
    } else if (leaves_domain(stride()) && searches("layout.order")) {
      findings_.illegal(
          "layout.order",
          fmt::format("{} takes tensor parallelism across the network", layout_.order), kStateIt);
    }
    if (layout_.overlap.tp && leaves_domain(stride()) && searches("layout.overlap.tp")) {
      findings_.illegal("layout.overlap.tp",
                        "exists only among GPUs that reach each other without the network",
                        kStateIt);
    }
  }

  // Whether tensor parallel groups whose members lie `stride` apart cross domains. The groups fill
  // blocks of stride x tp ranks, one after another.
  bool leaves_domain(std::int64_t stride) const {
    return scenario_.cluster.gpus() > domain_gpus() && domain_gpus() % (stride * layout_.tp) != 0;
  }
  std::int64_t stride() const {
    if (layout_.order == kUsualOrder) return 1;  // in which tensor ranks are neighbours
    const RankGrid grid(layout_);
    return grid.rank({.tp = 1}).index() - grid.rank({}).index();
  }

  const Scenario& scenario_;
  const Layout& layout_;
  const FrameworkTraits& traits_;
  const Stated& asked_;
  Findings& findings_;
};

}  // namespace

void check_launchable(const Scenario& scenario, const Stated& asked, Findings& findings) {
  Launchable(scenario, asked, findings).check();
}

Errors not_proposed(const Scenario& scenario) {
  Findings findings;
  check_launchable(scenario, Stated{}, findings);
  return findings.errors();
}

}  // namespace stepcast
