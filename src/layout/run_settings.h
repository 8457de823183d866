// SPDX-License-Identifier: Apache-2.0
// The object `run` of a scenario as the file states it: how long to train, on what terms, and what
// interrupts it. Defaults depend on the cluster and on price lists: economics/run_terms.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/json_fwd.h"
#include "core/quantity.h"

namespace stepcast {

struct Rows;  // core/rows.h

inline constexpr double kMaxTokens = 1e18;

struct CheckpointSettings {
  std::optional<Bytes> bytes;               // all ranks together
  std::optional<BytesPerSecond> bandwidth;  // all ranks together, while training stands still
  std::optional<Seconds> interval;          // of training between two; absent: the best

  bool operator==(const CheckpointSettings&) const = default;
  static Rows fields();
};

// How often a day something happens: never, or a rate that can be reckoned with.
struct PerDay {
  double rate = 0;
  PerDay() = default;
  PerDay(double stated) : rate(stated) {}
  operator double() const { return rate; }
};
bool read_json(const JsonValue& value, PerDay& out);
Json written_json(const PerDay& per_day);

// Nodes that go on working, but slowly, until somebody notices.
struct StragglerSettings {
  PerDay per_node_day;
  double slowdown = 0;  // 0.3: a step takes 1.3 times as long while there is one
  Seconds detection;    // until it is replaced

  static Rows fields();
};

// Wrong results that stop nothing: a check finds them, and all since the last check that passed is
// done again.
struct CorruptionSettings {
  PerDay per_node_day;
  Seconds check;       // of training between two checks
  Seconds check_time;  // training stands still for so long

  static Rows fields();
};

// Nodes that the provider takes back (spot).
struct PreemptionSettings {
  PerDay per_node_day;
  Seconds notice;  // between the warning and the end

  static Rows fields();
};

// A stage behind the others on longer sequences.
struct LongContextSettings {
  double tokens = 0;
  double token_cost = 1;  // times that of a token of the other stages

  static Rows fields();
};

// All GPUs are rented for this too, and no step of pre-training counts meanwhile.
struct BesideSettings {
  Seconds bring_up;        // acceptance, burn-in, and starts that failed before the first step
  double evaluation = 0;   // of the wall time of training
  double thrown_away = 0;  // of the wall time of training: starts that were given up
  std::optional<LongContextSettings> long_context;

  bool any() const {
    return bring_up.value() > 0 || evaluation > 0 || thrown_away > 0 || long_context;
  }
  static Rows fields();
};

// How GPUs are rented: for as long as wanted, until the provider takes them back, or for a term.
enum class Rental { kOnDemand, kSpot, kReserved };
constexpr const char* name_of(Rental rental) {
  constexpr const char* kMarketNames[] = {"on_demand", "spot", "reserved"};
  return kMarketNames[static_cast<std::size_t>(rental)];
}

struct RunSettings {
  std::optional<double> tokens;  // also where examples, epochs and tokens of an example are given
  std::optional<double> price_per_gpu_hour;     // dollars
  std::optional<Rental> rental;                 // absent: spot where nodes are taken back
  std::optional<std::int64_t> rented_together;  // GPUs; absent: as the price says, else a node's
  std::optional<Seconds> deadline;
  std::optional<double> budget;                 // dollars
  std::optional<PerDay> failures_per_node_day;  // of hardware: grows with the nodes
  PerDay failures_per_day;                      // of the job (software, people): does not
  CheckpointSettings checkpoint;
  std::optional<Seconds>
      restart;  // from the failure until training goes on, without a spare's wait
  std::int64_t spare_nodes = 0;
  std::optional<Seconds> repair;  // until a lost node or its replacement is back; absent: at once
  bool elastic = false;           // goes on with fewer replicas meanwhile, instead of waiting
  std::optional<StragglerSettings> stragglers;
  std::optional<PreemptionSettings> preemption;
  std::optional<CorruptionSettings> silent_corruption;
  std::optional<BesideSettings> beside;
  std::optional<double> pue;  // energy of the building per energy of the machines

  static Rows fields();
};

SortedJson to_json(const RunSettings& run);  // the keys that are given

}  // namespace stepcast
