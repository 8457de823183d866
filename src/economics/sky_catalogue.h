// SPDX-License-Identifier: Apache-2.0
// Reads a catalogue of SkyPilot (vms.csv of a cloud): prices of instances by region.
#pragma once

#include <string>

#include "economics/prices.h"

namespace stepcast {

bool is_sky_catalogue(const std::string& text);  // by its first line

// The lowest price of all regions for each instance that is a shipped cluster, and the lowest spot
// price, with their regions. A price of zero is none. Errors: rows of other lengths than the first,
// a price that is no number, and a file without such an instance.
Result<PriceList> read_sky_catalogue(const std::string& text, const std::string& file);

}  // namespace stepcast
