// SPDX-License-Identifier: Apache-2.0
#include "diagnose/product_order.h"

#include <algorithm>

#include "diagnose/step_windows.h"

namespace stepcast {
namespace {

// Places of product kernels that begin in the step, in order.
std::vector<std::size_t> products_in(const Timeline& timeline, const Window& step,
                                     const Labels& labels) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < timeline.activities.size(); ++i) {
    const Activity& one = timeline.activities[i];
    const bool multiplies =
        one.kind == ActivityKind::kCompute && labels[one.label].family == KernelFamily::kProducts;
    if (multiplies && one.begin_s >= step.begin_s && one.begin_s < step.end_s) out.push_back(i);
  }
  return out;
}

const Timeline* of_stage(const std::vector<Timeline>& all, std::int32_t stage) {
  const auto found = std::ranges::find(all, stage, &Timeline::stage);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool label_products_in_order(const std::vector<Timeline>& forecast, const Labels& labels,
                             std::vector<Timeline>& measured) {
  for (const Timeline& one : measured) {
    const Timeline* model = of_stage(forecast, one.stage);
    if (model == nullptr) return false;
    const std::size_t count = products_in(*model, model->steps.front(), labels).size();
    if (count == 0 || products_in(one, median_step(one), labels).size() != count) return false;
  }
  for (Timeline& one : measured) {
    const Timeline& model = *of_stage(forecast, one.stage);
    const auto order = products_in(model, model.steps.front(), labels);
    for (const Window& step : one.steps) {
      const auto own = products_in(one, step, labels);
      if (own.size() != order.size()) continue;
      for (std::size_t i = 0; i < own.size(); ++i) {
        one.activities[own[i]].label = model.activities[order[i]].label;
      }
    }
  }
  return true;
}

}  // namespace stepcast
