// SPDX-License-Identifier: Apache-2.0
// One rung climbed: its part of the space searched, its fastest layout held against the demands.
#pragma once

#include <memory>
#include <string>

#include "core/json_fwd.h"
#include "economics/prices.h"
#include "plan/advise/demands.h"
#include "plan/advise/ladder.h"
#include "plan/frugal_layout.h"
#include "plan/search.h"

namespace stepcast {

class Planner;
struct DataFolders;
struct Scenario;

enum class RungVerdict {
  kAdvised,
  kAbove,    // meets the demands too, above the advice
  kSpare,    // one GPU meets them, and the others would idle
  kBehind,   // meets them, and a rung above is so much faster that nobody would stay here
  kFails,    // a demand is not met
  kRefused,  // no layout is legal, or none is modelled
  kUnknown,  // the time was over before a layout was found that fits
};
const char* name_of(RungVerdict verdict);  // "advised"

struct RungResult {
  const Rung* rung = nullptr;
  TrainingMode mode = TrainingMode::kPretrain;
  std::int64_t gpus = 0;
  RungVerdict verdict = RungVerdict::kRefused;
  Errors objections;  // of kRefused
  std::shared_ptr<const Planner> planner;
  bool fits = false;                     // in memory
  std::optional<LayoutForecast> layout;  // the fastest that fits; if none does, a most frugal
                                         // one if there was time for it
  std::vector<Shortfall> shortfalls;     // of kFails
  ByteCount memory_limit = 0;
  std::optional<RunOutlook> run;  // of a layout that fits
  bool proven = false;            // that no layout of the rung is faster
  bool interrupted = false;

  bool meets() const { return fits && shortfalls.empty(); }
  Scenario scenario() const;  // with `layout`
};

struct AdviceInput {
  const SortedJson& scenario;  // as `plan` reads it, whole
  const Scenario& base;        // as it was read: model, cluster, training
  std::string file;            // for errors
  const DataFolders& folders;
  const PriceList& prices;
  Demands demands;
  SearchOptions search;  // of each rung; the demands' margin is laid over it
};

// Searches with `gpus` GPUs of the scenario's cluster. Errors: of a forecast; what keeps the rung
// from being climbed is in the result. `verdict` is kAbove for a rung that meets the demands.
// `mode`: in place of the rung's or the scenario's.
Result<RungResult> search_rung(const AdviceInput& input, const Rung& rung, std::int64_t gpus,
                               std::optional<TrainingMode> mode = {});

}  // namespace stepcast
