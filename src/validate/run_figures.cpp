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
      RunFigure{"step_time_s", FigureUnit::kSeconds,
                [](Run run) -> Value { return run.step_time.median; }, figure_of("step_time_s").of,
                "step time", [](Run run) { return &run.step_time; }, "step_time", "step time",
                0.10},
      RunFigure{"tokens_per_s", FigureUnit::kRate,
                [](Run run) { return unless_alone(run, run.tokens_per_s); },
                figure_of("tokens_per_s").of, "tokens/s"},
      RunFigure{"tokens_per_s_per_gpu", FigureUnit::kRate,
                [](Run run) { return unless_alone(run, run.tokens_per_s_per_gpu); },
                figure_of("tokens_per_s_per_gpu").of},
      RunFigure{"model_tflops_per_gpu", FigureUnit::kRate,
                [](Run run) { return unless_alone(run, run.model_tflops_per_gpu); },
                figure_of("model_tflops_per_gpu").of, "TFLOP/s per rank"},
      RunFigure{"mfu", FigureUnit::kFraction, [](Run run) { return run.alone ? Value() : run.mfu; },
                figure_of("mfu").of},
      RunFigure{"peak_memory_bytes", FigureUnit::kBytes,
                [](Run run) -> Value { return static_cast<double>(run.peak_memory); },
                figure_of("peak_memory_bytes").of, "peak memory", nullptr, "peak_memory",
                "peak memory", 0.01},
      // The forecast beside the GPU's memory is that of the tensors and of the framework.
      RunFigure{"device_used_bytes", FigureUnit::kBytes,
                [](Run run) {
                  return run.device_used ? Value(static_cast<double>(*run.device_used)) : Value();
                },
                figure_of("peak_device_bytes").of, "memory of the GPU", nullptr, "device_memory",
                "memory of the GPU", 0.05},
      RunFigure{"bubble_fraction", FigureUnit::kFraction,
                [](Run run) -> Value { return run.bubble_fraction.median; },
                figure_of("bubble_fraction").of, "bubble",
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
