// SPDX-License-Identifier: Apache-2.0
#include "diagnose/foreign_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "calibrate/device_name.h"
#include "cluster/accelerator.h"
#include "core/text/characters.h"
#include "diagnose/kernel_family.h"

namespace stepcast {
namespace {

// Shapes tell, where a trace has them.
void find_other_model(const Trace& trace, const ForecastNames& names, Errors& errors) {
  std::set<std::array<std::int64_t, 3>> shapes, known;
  for (const ProductShape& one : trace.products) {
    if (one.batch > 1) continue;  // attention that is written out
    std::array<std::int64_t, 3> shape{one.m, one.n, one.k};
    std::ranges::sort(shape);
    shapes.insert(shape);
    if (names.has_like(one)) known.insert(shape);
  }
  if (shapes.empty() || 2 * known.size() >= shapes.size()) return;
  errors.push_back(
      {ErrorCode::kIllegal,
       fmt::format("is not of this model: {} of {} products match", known.size(), shapes.size()),
       trace.file, "--trace", "the scenario of the run that was traced: model, tp and ep"});
}

void find_other_device(const Trace& trace, const Accelerator& device, Errors& errors) {
  if (trace.device_name.empty() || names_device(trace.device_name, device)) return;
  errors.push_back({ErrorCode::kIllegal,
                    fmt::format("was recorded on '{}', and the scenario's cluster has {}",
                                trace.device_name, device.title),
                    trace.file, "--trace", "the cluster of the run that was traced: --cluster"});
}

// Kernels of backward passes say so in their names (flash_bwd_kernel, silu_backward_kernel,
// LayerNormBackward, wgrad), and an optimizer's do.
bool is_of_training(const std::string& name) {
  if (family_of_kernel(name) == KernelFamily::kOptimizer) return true;
  const std::string small = lower_case(name);
  return std::ranges::any_of(std::array{"bwd", "backward", "grad"}, [&](const char* part) {
    return small.find(part) != std::string::npos;
  });
}

// The gradient of m x n x k with respect to its input is m x k x n, and of its weight k x n x m or
// n x k x m. A square weight's product looks like its own gradient.
bool has_gradients(const std::vector<ProductShape>& products) {
  std::set<std::array<std::int64_t, 3>> all;
  for (const ProductShape& one : products) all.insert({one.m, one.n, one.k});
  return std::ranges::any_of(products, [&](const ProductShape& one) {
    return all.contains({one.m, one.k, one.n}) || all.contains({one.k, one.n, one.m}) ||
           all.contains({one.n, one.k, one.m});
  });
}

void find_forward_alone(const Trace& trace, Errors& errors) {
  if (trace.products.empty() || has_gradients(trace.products)) return;
  if (std::ranges::any_of(trace.names, is_of_training)) return;
  errors.push_back({ErrorCode::kIllegal,
                    "holds forward passes alone: no gradient of a product, no kernel of a backward "
                    "pass or an optimizer",
                    trace.file, "--trace", "a trace of whole training steps"});
}

}  // namespace

Errors foreign_traces(const std::vector<Trace>& traces, const ForecastNames& names,
                      const Accelerator& device) {
  Errors errors;
  for (const Trace& trace : traces) {
    find_other_model(trace, names, errors);
    if (trace.is_forecast) continue;
    find_other_device(trace, device, errors);
    find_forward_alone(trace, errors);
  }
  return errors;
}

}  // namespace stepcast
