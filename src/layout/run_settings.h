// SPDX-License-Identifier: Apache-2.0
// The object `run` of a scenario as the file states it: how long to train, on what terms, and what
// interrupts it. Defaults depend on the cluster and on price lists: economics/run_terms.h.
#pragma once

#include <cstdint>
#include <optional>

#include "core/json_field.h"
#include "core/json_fwd.h"
#include "core/quantity.h"

namespace stepcast {

inline constexpr double kMaxTokens = 1e18;

struct CheckpointSettings {
  std::optional<Bytes> bytes;               // all ranks together
  std::optional<BytesPerSecond> bandwidth;  // all ranks together, while training stands still
  std::optional<Seconds> interval;          // of training between two; absent: the best

  bool operator==(const CheckpointSettings&) const = default;
  static auto fields() {
    using F = CheckpointSettings;
    return std::tuple{json_field("bytes", &F::bytes).with_unit(),
                      json_field("bandwidth", &F::bandwidth).with_unit().positive(),
                      json_field("interval", &F::interval).with_unit().positive()};
  }
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

  static auto fields() {
    using F = StragglerSettings;
    return std::tuple{json_field("per_node_day", &F::per_node_day).required(),
                      json_field("slowdown", &F::slowdown).required().within(0, 1e3),
                      json_field("detection", &F::detection).required().with_unit()};
  }
};

// Wrong results that stop nothing: a check finds them, and all since the last check that passed is
// done again.
struct CorruptionSettings {
  PerDay per_node_day;
  Seconds check;       // of training between two checks
  Seconds check_time;  // training stands still for so long

  static auto fields() {
    using F = CorruptionSettings;
    return std::tuple{json_field("per_node_day", &F::per_node_day).required(),
                      json_field("check", &F::check).required().with_unit().positive(),
                      json_field("check_time", &F::check_time).with_unit()};
  }
};

// Nodes that the provider takes back (spot).
struct PreemptionSettings {
  PerDay per_node_day;
  Seconds notice;  // between the warning and the end

  static auto fields() {
    using F = PreemptionSettings;
    return std::tuple{json_field("per_node_day", &F::per_node_day).required(),
                      json_field("notice", &F::notice).with_unit()};
  }
};

struct RunSettings {
  std::optional<double> tokens;  // also where examples, epochs and tokens of an example are given
  std::optional<double> price_per_gpu_hour;     // dollars
  std::optional<std::int64_t> rented_together;  // GPUs; absent: as the price says, else a node's
  std::optional<Seconds> deadline;
  std::optional<double> budget;                 // dollars
  std::optional<PerDay> failures_per_node_day;  // of hardware: grows with the nodes
  PerDay failures_per_day;                      // of the job (software, people): does not
  CheckpointSettings checkpoint;
  std::optional<Seconds>
      restart;  // from the failure until training goes on, without a spare's wait
  std::int64_t spare_nodes = 0;
  Seconds repair;        // until a lost node or its replacement is back; 0: at once
  bool elastic = false;  // goes on with fewer replicas meanwhile, instead of waiting
  std::optional<StragglerSettings> stragglers;
  std::optional<PreemptionSettings> preemption;
  std::optional<CorruptionSettings> silent_corruption;
  std::optional<double> pue;  // energy of the building per energy of the machines

  static auto fields() {
    using F = RunSettings;
    constexpr double kMaxDollars = 1e15, kMaxNodes = 1 << 20;
    return std::tuple{
        json_field("tokens", &F::tokens).within(1, kMaxTokens),
        json_field("price_per_gpu_hour", &F::price_per_gpu_hour).within(0, kMaxDollars),
        json_field("rented_together", &F::rented_together).within(1, kMaxNodes),
        json_field("deadline", &F::deadline).with_unit(),
        json_field("budget", &F::budget).within(0, kMaxDollars),
        json_field("failures_per_node_day", &F::failures_per_node_day),
        json_field("failures_per_day", &F::failures_per_day),
        json_field("checkpoint", &F::checkpoint).unless_usual(),
        json_field("restart", &F::restart).with_unit(),
        json_field("spare_nodes", &F::spare_nodes).within(0, kMaxNodes),
        json_field("repair", &F::repair).with_unit(),
        json_field("elastic", &F::elastic).unless_usual(),
        json_field("stragglers", &F::stragglers),
        json_field("preemption", &F::preemption),
        json_field("silent_corruption", &F::silent_corruption),
        json_field("pue", &F::pue).within(1, 10)};
  }
};

SortedJson to_json(const RunSettings& run);  // the keys that are given

}  // namespace stepcast
