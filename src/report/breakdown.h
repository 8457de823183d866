// SPDX-License-Identifier: Apache-2.0
// A forecast's times and memory as lists of named parts: what every format prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/prediction.h"

namespace stepcast {

struct Scenario;

struct TimePart {
  std::string key;    // "exposed_tp"
  const char* label;  // "exposed tensor parallel"
  Seconds time;
  TimeKind kind;
  std::optional<TrafficKind> traffic = {};
};

// Lists the parts in the order of the prediction file; they add up to parts.total().
std::vector<TimePart> parts_of(const TimeParts& parts);

// Names a part when it is no rank's own, but that of the mean of ranks.
const char* label_of_mean(const TimePart& part);

// The parts of the mean rank's step. The critical rank may differ between forecasts; means can be
// compared.
TimeParts mean_time(const Prediction& prediction);

// Lists the steps from ideal FLOP time to the step time; they add up to the step time.
std::vector<TimePart> steps_of(const Waterfall& waterfall);

// The largest steps beyond the ideal one, largest first, those of under 1 % of `total` left out.
std::vector<TimePart> largest_losses(const Waterfall& waterfall, Seconds total, std::size_t count);

// How many categories of memory files and charts have: the last one only with outer steps.
int memory_categories(const Prediction& prediction);

// The class of each stage with the largest device memory, by stage.
std::vector<const RankClass*> fullest_by_stage(const Prediction& prediction);

// Says of each class whether it holds the lowest rank of its stage, which stands for the stage in
// traces and pictures, so that they stay readable; together these ranks are one pipeline.
std::vector<bool> classes_of_one_pipeline(const Prediction& prediction);
std::int32_t lowest_rank(const RankClass& rank_class);

inline ByteCount device_bytes(const RankClass& rank_class) {
  return rank_class.reserved_bytes + rank_class.framework_bytes;
}

// Below 80 % of device memory runs have not been seen to go out of memory; above, allocator and
// fragmentation decide.
enum class Verdict { kFits, kTight, kDoesNotFit };
// Stands beside an MFU and says how attention counts in it.
const char* flop_count_text(FlopCount count);

Verdict verdict_of(const Prediction& prediction);
const char* name_of(Verdict verdict);

// "tp 8 · pp 4 · dp 2 · ..." and "llama-3.1-70b on 64 GPUs of dgx-h100".
std::string layout_text(const Scenario& scenario);
// "8.03B parameters · tp 2 · ...": so that a model that was read wrongly shows.
std::string model_and_layout_text(const Scenario& scenario);
std::string headline(const Scenario& scenario);
// Names what all of them have in common; empty when that is nothing.
std::string headline(const std::vector<const Scenario*>& scenarios);

}  // namespace stepcast
