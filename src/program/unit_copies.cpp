// SPDX-License-Identifier: Apache-2.0
#include "program/unit_copies.h"

#include <algorithm>

#include "layout/scenario.h"
#include "program/sharded_units.h"

namespace stepcast {
namespace {

void add_copy(const char* name, bool backward, std::int64_t elements, std::int64_t bytes_each,
              BlockBuilder& builder) {
  if (elements == 0 || bytes_each == 0) return;
  const double bytes = static_cast<double>(elements) * static_cast<double>(bytes_each);
  builder.add(name, UnitCopy{backward, elements, bytes}, {}, {});
}

}  // namespace

void copy_gathered_unit(const Scenario& scenario, BlockBuilder& builder) {
  const FrameworkRules& rules = scenario.rules;
  if (rules.keeps_units) return;  // lower_gathered_copy()
  // Lists are filled from a flat tensor, and parameters from lists.
  const std::int64_t copies = rules.gathers_into_lists ? 2 : rules.copies_gathered_units ? 1 : 0;
  const Block& block = builder.block();
  const std::int64_t elements = block.parameters.total() + block.frozen.elements();
  add_copy("copy_gathered", false, elements, copies * 2 * builder.shape().element, builder);
}

void copy_unit_gradients(const Scenario& scenario, BlockBuilder& builder) {
  const FrameworkRules& rules = scenario.rules;
  const std::int64_t element = builder.shape().element;
  const std::int64_t reduced = size_of(scenario.training.reduce_precision);
  if (sums_wide_gradients(scenario)) {
    // The first of a step is a cast, or nothing at all where it is of the type already; later ones
    // are read, added and written.
    const double wide = static_cast<double>(std::max(reduced, element));
    const double fresh = reduced > element ? static_cast<double>(element) + wide : 0;
    const double later = static_cast<double>(element) + 2 * wide;
    const auto steps = static_cast<double>(scenario.micro_batches());
    const std::int64_t elements = builder.block().parameters.total();
    const double each = (fresh + (steps - 1) * later) / steps;
    if (elements == 0 || each == 0) return;
    const auto add = [&] {
      builder.add("sum_gradients", UnitCopy{true, elements, each * static_cast<double>(elements)},
                  {}, {});
    };
    if (builder.block().form == BackwardForm::kSplit) return builder.among_weight_gradients(add);
    return add();
  }
  std::int64_t bytes = 0;
  if (rules.flattens_gradients) {
    bytes = 2 * element + (scenario.training.no_sync ? 0 : 2 * reduced);
  } else if (rules.copies_gathered_units && reduced <= element) {
    bytes = 2 * element;  // a wider type is cast in the same pass (lower_gradient_cast)
  }
  add_copy("copy_gradients", true, builder.block().parameters.total(), bytes, builder);
}

namespace {

Block lower_copy(const Scenario& scenario, const char* name, const UnitCopy& copy) {
  const Shape shape(scenario);
  Block block;
  block.kind = BlockKind::kCopyUnit;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  builder.into(Pass::kForward, copy.backward ? Phase::kBackward : Phase::kForward);
  builder.add(name, copy, {}, {});
  return block;
}

}  // namespace

Block lower_gathered_copy(const Scenario& scenario, ByteCount bytes) {
  const std::int64_t elements = bytes / size_of(scenario.training.wide());
  return lower_copy(scenario, "copy_gathered", {false, elements, 2 * static_cast<double>(bytes)});
}

Block lower_reduced_copy(const Scenario& scenario, std::int64_t elements) {
  const std::int64_t each =
      std::max(size_of(scenario.training.reduce_precision), size_of(scenario.training.wide()));
  const double bytes = 2 * static_cast<double>(each) * static_cast<double>(elements);
  return lower_copy(scenario, "copy_gradients", {true, elements, bytes});
}

}  // namespace stepcast
