// SPDX-License-Identifier: Apache-2.0
// A GPU costs so much per hour: lists of published prices, each with its source and date.
// Data: prices/*.json (docs/formats/prices.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json_field.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

class JsonValue;
struct ClusterSpec;

struct Price {
  std::string cluster = {};      // of one offer, by the cluster's name; or
  std::string accelerator = {};  // of the market, by the accelerator's
  double dollars_per_gpu_hour = 0;
  std::int64_t rented_together = 0;  // GPUs that are let at once; 0: those of a node
  Seconds least = {};                // that is billed, however short the run is
  std::string provider = {};
  std::string as_of = {};   // "2026-05", "2026-05-07"
  std::string source = {};  // empty: the user says so

  void check(const JsonValue& value) const;

  static auto fields() {
    using F = Price;
    return std::tuple{
        json_field("cluster", &F::cluster)
            .says("the cluster that is offered; this or an accelerator, and not both"),
        json_field("accelerator", &F::accelerator)
            .says("the accelerator whose market price this is"),
        json_field("usd_per_gpu_hour", &F::dollars_per_gpu_hour)
            .required()
            .within(0, 1e6)
            .says("dollars, on demand, for a GPU"),
        json_field("rented_together", &F::rented_together)
            .within(1, 1 << 20)
            .says("GPUs that are let at once: 1 where single ones are; a whole node unless stated"),
        json_field("least_time", &F::least)
            .with_unit()
            .says("what is billed at least, as \"24 h\""),
        json_field("provider", &F::provider).required().says("who asks this price"),
        json_field("as_of", &F::as_of).required().says("when: 2026, 2026-05 or 2026-05-07"),
        json_field("source", &F::source).required().says("where it was read")};
  }
};

using PriceList = std::vector<Price>;

struct PriceFiles {
  std::string folder;    // holds those that ship
  std::string own = {};  // a file of the user's that goes before them; empty: none
};

// An entry without source or date is an error, and so are two entries for one cluster or
// accelerator, except that those of the user replace those that ship.
Result<PriceList> load_prices(const PriceFiles& files);

// The cluster's own price, else its accelerator's; nullptr when neither is listed.
const Price* find_price(const PriceList& prices, const ClusterSpec& cluster);

}  // namespace stepcast
