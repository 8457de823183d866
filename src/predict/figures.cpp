// SPDX-License-Identifier: Apache-2.0
#include "predict/figures.h"

#include <algorithm>
#include <array>

#include "core/assert.h"
#include "core/quantity.h"
#include "predict/prediction.h"

namespace stepcast {
namespace {

using Forecast = const Prediction&;

template <ByteCount Prediction::*bytes>
double bytes_of(Forecast p) {
  return static_cast<double>(p.*bytes);
}
template <Seconds Prediction::*time>
double seconds_of(Forecast p) {
  return (p.*time).value();
}
template <double Prediction::*number>
double number_of(Forecast p) {
  return p.*number;
}

constexpr unsigned kEveryRow = kForecastRow | kComparedRows | kPlanRows | kOfferRows;

constexpr std::array kFigures{
    Figure{"step_time_s", "step", FigureUnit::kSeconds, FigureGroup::kTime,
           seconds_of<&Prediction::step_time>,
           "time between the ends of two successive optimizer steps, jitter-free median; on "
           "processors the sum of measured means",
           kEveryRow | kGrid | kRungs, "step_time"},
    Figure{"step_time_low_s", "low", FigureUnit::kSeconds, FigureGroup::kTime,
           seconds_of<&Prediction::step_time_low>, "where its central 90 % begins",
           kForecastRow | kPlanRows | kOfferRows},
    Figure{"step_time_high_s", "high", FigureUnit::kSeconds, FigureGroup::kTime,
           seconds_of<&Prediction::step_time_high>, "where its central 90 % ends",
           kForecastRow | kPlanRows | kOfferRows},
    Figure{"tokens_per_s", "tokens/s", FigureUnit::kRate, FigureGroup::kRates,
           number_of<&Prediction::tokens_per_s>,
           "global batch x sequence length over the step time",
           kForecastRow | kComparedRows | kOfferRows | kRungs, "tokens_per_s", Better::kMore},
    Figure{"tokens_per_s_per_gpu", "tokens/s/GPU", FigureUnit::kRate, FigureGroup::kRates,
           number_of<&Prediction::tokens_per_s_per_gpu>, "that of one GPU",
           kForecastRow | kComparedRows | kPlanRows | kGrid, "tokens_per_s_per_gpu", Better::kMore},
    Figure{"model_tflops_per_gpu", "TFLOP/s/GPU", FigureUnit::kRate, FigureGroup::kRates,
           number_of<&Prediction::model_tflops_per_gpu>, "without recomputed work", kForecastRow,
           "tflops", Better::kMore},
    Figure{"hardware_tflops_per_gpu", "hardware TFLOP/s/GPU", FigureUnit::kRate,
           FigureGroup::kRates, number_of<&Prediction::hardware_tflops_per_gpu>,
           "with recomputed work", kForecastRow, nullptr, Better::kMore},
    Figure{"mfu", "MFU", FigureUnit::kFraction, FigureGroup::kUse, number_of<&Prediction::mfu>,
           "model FLOPs over the dense peak of the precision; left out where the "
           "data sheet has no such peak",
           kEveryRow | kGrid | kRungs, "mfu", Better::kMore, number_of<&Prediction::mfu_causal>},
    Figure{"mfu_causal", "causal MFU", FigureUnit::kFraction, FigureGroup::kUse,
           number_of<&Prediction::mfu_causal>,
           "MFU with attention counted as a causal mask leaves it, half; tables and pages show it "
           "from 32768 tokens on, and where it is below 85 % of mfu",
           kForecastRow | kComparedRows | kPlanRows, "mfu_causal", Better::kMore},
    Figure{"hfu", "HFU", FigureUnit::kFraction, FigureGroup::kUse, number_of<&Prediction::hfu>,
           "hardware FLOPs over that peak; also left out where the full count is "
           "more than the device can have executed, as on long sequences",
           kForecastRow, "hfu", Better::kMore, number_of<&Prediction::hfu_causal>},
    Figure{"hfu_causal", "causal HFU", FigureUnit::kFraction, FigureGroup::kUse,
           number_of<&Prediction::hfu_causal>, "HFU likewise", kForecastRow, "hfu_causal",
           Better::kMore},
    Figure{"bubble_fraction", "bubble", FigureUnit::kFraction, FigureGroup::kBubble,
           number_of<&Prediction::bubble_fraction>,
           "1 - mean over ranks of (busy + exposed tp, cp, ep, dp inside the span) / largest span",
           kForecastRow | kComparedRows, "bubble"},
    Figure{"bubble_fraction_steady", "steady bubble", FigureUnit::kFraction, FigureGroup::kBubble,
           number_of<&Prediction::bubble_fraction_steady>,
           "one less the part of the steady-state period in which the mean rank is busy with "
           "passes: the optimizer and exposed communication after them count as well"},
    Figure{"peak_memory_bytes", "allocated", FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::peak_memory>,
           "largest sum of living tensors on any rank, as `max_memory_allocated` counts",
           kForecastRow},
    Figure{"peak_reserved_bytes", "reserved", FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::peak_reserved>,
           "with the caching allocator's rounding and fragmentation", kForecastRow},
    Figure{"peak_device_bytes", "GiB", FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::peak_device>,
           "with the framework's fixed part too (context, libraries, communicators)",
           kEveryRow | kGrid, "memory"},
    Figure{"peak_device_low_bytes", nullptr, FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::peak_device_low>, "where its central 90 % begins"},
    Figure{"peak_device_high_bytes", nullptr, FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::peak_device_high>, "where its central 90 % ends"},
    Figure{"device_memory_bytes", nullptr, FigureUnit::kBytes, FigureGroup::kMemory,
           bytes_of<&Prediction::device_memory>, "what the driver reports as total", kForecastRow,
           nullptr, Better::kNeither},
};

}  // namespace

std::span<const Figure> figures() { return kFigures; }

const Figure& figure_of(std::string_view key) {
  const auto found = std::ranges::find(kFigures, key, &Figure::key);
  STEPCAST_ASSERT(found != kFigures.end(), "a key of a figure");
  return *found;
}

}  // namespace stepcast
