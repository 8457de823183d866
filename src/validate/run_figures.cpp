// SPDX-License-Identifier: Apache-2.0
#include "validate/run_figures.h"

#include <array>

namespace stepcast {
namespace {

using Run = const MeasuredRun&;
using Value = std::optional<double>;

Value unless_alone(Run run, double value) { return run.alone ? Value() : Value(value); }

}  // namespace

std::span<const RunFigure> run_figures() {
  // Memory follows from the program and comes out the same each time. Times of runs on machines
  // that others use as well differ by several per cent; a limit below 10 % needs a quiet machine.
  static const std::array all{
      RunFigure{"step_time_s", figure_of("step_time_s"),
                [](Run run) -> Value { return run.step_time.median; }, "step time",
                [](Run run) { return &run.step_time; }, "step_time", "step time", 0.10},
      RunFigure{"tokens_per_s", figure_of("tokens_per_s"),
                [](Run run) { return unless_alone(run, run.tokens_per_s); }, "tokens/s"},
      RunFigure{"tokens_per_s_per_gpu", figure_of("tokens_per_s_per_gpu"),
                [](Run run) { return unless_alone(run, run.tokens_per_s_per_gpu); }},
      RunFigure{"model_tflops_per_gpu", figure_of("model_tflops_per_gpu"),
                [](Run run) { return unless_alone(run, run.model_tflops_per_gpu); },
                "TFLOP/s per rank"},
      RunFigure{"mfu", figure_of("mfu"), [](Run run) { return run.alone ? Value() : run.mfu; }},
      RunFigure{"peak_memory_bytes", figure_of("peak_memory_bytes"),
                [](Run run) -> Value { return static_cast<double>(run.peak_memory); },
                "peak memory", nullptr, "peak_memory", "peak memory", 0.01},
      // The forecast beside the GPU's memory is that of the tensors and of the framework.
      RunFigure{"device_used_bytes", figure_of("peak_device_bytes"),
                [](Run run) {
                  return run.device_used ? Value(static_cast<double>(*run.device_used)) : Value();
                },
                "memory of the GPU", nullptr, "device_memory", "memory of the GPU", 0.05},
      RunFigure{"bubble_fraction", figure_of("bubble_fraction"),
                [](Run run) -> Value { return run.bubble_fraction.median; }, "bubble",
                [](Run run) { return &run.bubble_fraction; }, "bubble_fraction", "bubble", 0.05,
                true},
  };
  return all;
}

std::vector<const RunFigure*> limited_figures() {
  std::vector<const RunFigure*> out;
  for (const RunFigure& figure : run_figures()) {
    if (figure.limited != nullptr) out.push_back(&figure);
  }
  return out;
}

std::vector<std::string> limited_names() {
  std::vector<std::string> out;
  for (const RunFigure* figure : limited_figures()) out.emplace_back(figure->limited);
  return out;
}

}  // namespace stepcast
