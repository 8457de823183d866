// SPDX-License-Identifier: Apache-2.0
// Checks islands and their outer steps.
#include <fmt/format.h>

#include <string>

#include "layout/framework.h"
#include "layout/islands.h"
#include "layout/keys.h"
#include "layout/legality.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr const char* kIslands = "training.outer.islands";

// torchft has them for torchtitan (semi_sync_method "diloco"); Megatron-LM and DeepSpeed have not.
void check_framework(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"training.framework"})) return;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (framework.outer_steps) return;
  findings.illegal(kIslands, fmt::format("{} has no outer steps", framework.name),
                   "framework " + frameworks_with(&FrameworkTraits::outer_steps));
}

void check_meetings(const Scenario& s, Findings& findings) {
  const OuterSteps& outer = s.training.outer;
  if (outer.fragments > outer.every) {
    findings.illegal("training.outer.fragments",
                     fmt::format("{} meetings in {} steps", outer.fragments, outer.every),
                     fmt::format("at most {}", outer.every));
  } else if (outer.overlap_steps > outer.every / outer.fragments) {
    findings.illegal("training.outer.overlap_steps",
                     fmt::format("{} meetings of {} steps in {}", outer.fragments,
                                 outer.overlap_steps, outer.every),
                     fmt::format("at most {}", outer.every / outer.fragments));
  }
  if (findings.trusts({"model"}) && outer.fragments > s.model.layers) {
    findings.illegal("training.outer.fragments",
                     fmt::format("{} of a model of {} layers", outer.fragments, s.model.layers),
                     fmt::format("at most {}", s.model.layers));
  }
}

}  // namespace

void check_outer_steps(const Scenario& s, const Stated& stated, Findings& findings) {
  const OuterSteps& outer = s.training.outer;
  if (!outer.any()) {
    for (const char* key : {"every", "precision", "fragments", "overlap_steps", "host"}) {
      const std::string path = fmt::format("training.outer.{}", key);
      if (stated.has(path)) findings.illegal(path, "there are no islands", "give outer.islands");
    }
    return;
  }
  check_framework(s, findings);
  check_meetings(s, findings);
  if (s.cluster.spec.of_nodes > 0) {
    findings.unsupported(kIslands, "training in islands beside other jobs is", "leave one out");
    return;
  }
  if (!findings.trusts({"cluster"}) || s.all_islands) return;
  findings.illegal(kIslands,
                   fmt::format("{} alike do not come of {}", outer.islands,
                               why_no_islands(s.cluster.spec, outer.islands)),
                   "islands of whole nodes that are alike, in one site or of whole sites");
  findings.distrust("cluster");
}

}  // namespace stepcast
