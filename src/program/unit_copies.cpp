// SPDX-License-Identifier: Apache-2.0
#include "program/unit_copies.h"

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
  std::int64_t bytes = 0;
  if (rules.flattens_gradients) {
    bytes = 2 * element + (scenario.training.no_sync ? 0 : 2 * reduced);
  } else if (rules.copies_gathered_units && reduced <= element) {
    bytes = 2 * element;  // a wider type is cast in the same pass (lower_gradient_cast)
  }
  add_copy("copy_gradients", true, builder.block().parameters.total(), bytes, builder);
}

}  // namespace stepcast
