// SPDX-License-Identifier: Apache-2.0
// A GPU costs so much per hour: lists of published prices, each with its source and date.
// Data: prices/*.json (docs/formats/prices.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "layout/run_settings.h"

namespace stepcast {

class JsonValue;
struct ClusterSpec;
struct Rows;  // core/rows.h

struct Price {
  std::string cluster = {};             // of one offer, by the cluster's name; or
  std::string accelerator = {};         // of the market, by the accelerator's
  double dollars_per_gpu_hour = 0;      // on demand
  std::optional<double> spot = {};      // where the provider takes it back at will
  std::optional<double> reserved = {};  // for the term that the source names
  std::int64_t rented_together = 0;     // GPUs that are let at once; 0: those of a node
  Seconds least = {};                   // that is billed, however short the run is
  std::string provider = {};
  std::string as_of = {};   // "2026-05", "2026-05-07"
  std::string source = {};  // empty: the user says so
  bool is_own = false;      // from the user, who means it for all that have the accelerator

  // The dollars for this kind of rental; nothing: it is not listed.
  std::optional<double> asked(Rental rental) const;
  void check(const JsonValue& value) const;

  static Rows fields();
};

using PriceList = std::vector<Price>;

struct PriceFiles {
  std::string folder;    // holds those that ship
  std::string own = {};  // a file of the user's that goes before them; empty: none
};

// An entry without source or date is an error, and so are two entries for one cluster or
// accelerator, except that those of the user replace those that ship.
Result<PriceList> load_prices(const PriceFiles& files);

// The cluster's own price, else its accelerator's where several let such clusters: what one
// provider asks is no price of another, but the user's own goes everywhere. nullptr when there is
// none.
const Price* find_price(const PriceList& prices, const ClusterSpec& cluster);

// Why there is none, for people: "no spot price of Azure for GB200 is known here".
std::string why_no_price(const ClusterSpec& cluster, Rental rental = Rental::kOnDemand);

// Whether a date ("2025", "2025-06", "2025-06-01") lies, even at its latest, more than a year
// before a day ("2026-11-28").
bool is_over_a_year(const std::string& date, const std::string& day);

}  // namespace stepcast
