// SPDX-License-Identifier: Apache-2.0
// More of what a cluster has makes no step longer, and a larger batch makes none shorter.
#include <fmt/format.h>

#include <cmath>

#include "generate/property.h"
#include "kept_choices.h"
#include "plan/what_if.h"

namespace stepcast::generate {
namespace {

// A step may be so much longer all the same: work that overlaps meets at other times.
constexpr double kSlack = 1e-3;

double factor(Draw& draw) { return draw.of(std::vector<double>{1.02, 1.1, 1.25, 1.5, 2, 4}); }

// A step that meets other traffic is longer by this much at most. Without links that are shared it
// may still be a little longer, because channels share SMs with kernels.
constexpr double kMeetings = 0.15, kApart = 5e-3;

// A step whose critical rank waits for its host more than half of the time is longer by this much
// at most. Its replay begins at a barrier, where hosts have no lead yet (predict/simulation.cpp);
// hosts that bind all along would bring theirs from the step before.
constexpr double kWaitsForHosts = 0.5, kWithoutLead = 0.1;

bool lacks_lead(const Prediction& after, double longer) {
  return after.time.other > kWaitsForHosts * after.step_time && longer <= 1 + kWithoutLead;
}

// The reasons for a longer step: hosts without a lead, and those that kept_choices.h asks for.
Verdict has_reason(Case& c, const Scenario& changed, const Prediction& after) {
  if (lacks_lead(after, after.step_time / c.forecast()->step_time)) return {Verdict::kExcepted};
  const auto kept = testing::keep_choices(c.scenario(), changed, source_folders());
  if (!kept) return violated(to_string(kept.error()));
  const double longer = kept->step_time / c.forecast()->step_time;
  if (kept->differ && longer <= 1 + kSlack) return {Verdict::kExcepted};
  if (kept->apart <= 1 + kApart && longer <= 1 + kMeetings) return {Verdict::kExcepted};
  return violated(
      fmt::format("{:.3f} % with the same choices of NCCL and the schedule, {:.3f} % where nobody "
                  "shares a link",
                  100 * (longer - 1), 100 * (kept->apart - 1)));
}

Verdict is_no_longer(Case& c, const Scenario& changed, const std::string& change,
                     const std::string& flags = {}) {
  const Prediction& before = *c.forecast();
  const auto after = predict(changed, source_folders());
  if (!after) return violated(fmt::format("{}: {}", change, to_string(after.error())));
  Verdict out = holds();
  const double longer = after->step_time / before.step_time;
  if (longer > 1 + kSlack) {
    out = has_reason(c, changed, *after);
    if (out.kind == Verdict::kViolated) {
      out.what = fmt::format("{} makes a step of {} s longer by {:.3f} %; {}", change,
                             before.step_time.value(), 100 * (longer - 1), out.what);
      out.flags = flags;
      return out;
    }
  }
  // An order that fits the memory there is takes what it gets.
  const bool fitted = rules_of(changed.layout.schedule).orders != nullptr;
  if (after->peak_memory > before.peak_memory && !fitted) {
    return violated(fmt::format("{} makes {} bytes of memory {}", change, before.peak_memory,
                                after->peak_memory));
  }
  // The allocator gives its free blocks back only when the device is full, so it holds more of them
  // on a larger one (memory/device_footprint.h).
  const bool larger = after->device_memory > before.device_memory;
  // Operands of a collective stay held until the host knows that it has ended, which other times
  // move among the allocations.
  const bool timed = changed.rules.records_streams;
  if (after->peak_device > before.peak_device && !fitted && !larger && !timed) {
    return violated(fmt::format("{} makes {} bytes of the device {}", change, before.peak_device,
                                after->peak_device));
  }
  if (before.fits && !after->fits) return violated(change + " makes what fits too large");
  return out;
}

// Does not apply if the cluster has none of the resource, or is a graph without such a figure.
Property faster(const ClusterResource& resource) {
  const std::string name = fmt::format("faster_{}", resource.name);
  return {name, fmt::format("a better {} makes no step longer", resource.title),
          [&resource, name](Case& c) {
            Draw draw = c.draw(name.c_str());
            const double times = factor(draw);
            const auto changed = apply_what_if(c.scenario(), {&resource, times});
            if (!changed) return does_not_apply();
            const std::string change = fmt::format("{}=x{}", resource.name, times);
            return is_no_longer(c, *changed, change, "--what-if " + change);
          },
          3, 20};
}

// A resource that is a little better changes a step a little: by this much for the part that it
// grows by. Only a choice of NCCL or of a fitted schedule comes in a larger step.
constexpr double kLittleBetter = 1.01, kLittleChange = 0.02;

Property smooth(const ClusterResource& resource) {
  const std::string name = fmt::format("smooth_{}", resource.name);
  return {
      name, fmt::format("1 % of {} is worth 2 % of a step at most", resource.title),
      [&resource](Case& c) {
        const auto changed = apply_what_if(c.scenario(), {&resource, kLittleBetter});
        if (!changed) return does_not_apply();
        const auto after = predict(*changed, source_folders());
        if (!after) return violated(to_string(after.error()));
        const Seconds before = c.forecast()->step_time;
        const auto jump = [&](Seconds step) { return std::abs(step / before - 1); };
        if (jump(after->step_time) <= kLittleChange) return holds();
        const auto kept = testing::keep_choices(c.scenario(), *changed, source_folders());
        if (!kept) return violated(to_string(kept.error()));
        if (kept->differ && jump(kept->step_time) <= kLittleChange) {
          return Verdict{Verdict::kExcepted};
        }
        return violated(
            fmt::format("a step of {} s changes by {:.3f} %, with the same choices by {:.3f} %",
                        before.value(), 100 * jump(after->step_time), 100 * jump(kept->step_time)),
            fmt::format("--what-if {}=x{}", resource.name, kLittleBetter));
      },
      3, 20};
}

Verdict more_memory(Case& c) {
  Draw draw = c.draw("more_memory");
  Scenario changed = c.scenario();
  ByteCount& memory = changed.cluster.spec.accelerator.memory;
  memory = static_cast<ByteCount>(static_cast<double>(memory) * factor(draw));
  return is_no_longer(c, changed, "more memory");
}

Verdict wider_trunks(Case& c) {
  if (c.scenario().cluster.spec.is_graph) return does_not_apply();
  Draw draw = c.draw("wider_trunks");
  Scenario changed = c.scenario();
  changed.cluster.spec.oversubscription /= factor(draw);
  changed.cluster.topology = build_topology(changed.cluster.spec);
  return is_no_longer(c, changed, "less oversubscription");
}

// More micro-batches, where the schedule takes them, and nothing else changed.
Verdict larger_batch(Case& c) {
  auto file = nlohmann::json::parse(c.text());
  file["training"]["global_batch"] = 2 * c.scenario().training.global_batch;
  const auto changed = read_text(file.dump());
  if (!changed) return does_not_apply();
  const auto after = predict(*changed, source_folders());
  if (!after) return violated(to_string(after.error()));
  const Prediction& before = *c.forecast();
  if (after->step_time >= before.step_time * (1 - 1e-9)) return holds();
  return violated(fmt::format("twice the batch takes {} s instead of {} s",
                              after->step_time.value(), before.step_time.value()));
}

}  // namespace

std::vector<Property> monotone_properties() {
  std::vector<Property> out;
  for (const ClusterResource& resource : cluster_resources()) out.push_back(faster(resource));
  for (const ClusterResource& resource : cluster_resources()) out.push_back(smooth(resource));
  out.push_back({"more_memory", "more memory makes no step longer", more_memory, 3, 100});
  out.push_back(
      {"wider_trunks", "less oversubscription makes no step longer", wider_trunks, 3, 50});
  out.push_back({"larger_batch", "a larger batch makes no step shorter", larger_batch, 3, 80});
  return out;
}

}  // namespace stepcast::generate
