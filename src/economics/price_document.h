// SPDX-License-Identifier: Apache-2.0
// Reads what one document says of prices.
#pragma once

#include "economics/prices.h"

namespace stepcast {

class JsonDocument;

// Adds its prices. Errors stay in the document.
void read_prices(JsonDocument& document, PriceList& prices);

}  // namespace stepcast
