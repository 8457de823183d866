// SPDX-License-Identifier: Apache-2.0
// Prices for searches.
#pragma once

#include <memory>

#include "layout/framework.h"

namespace stepcast {

struct Pricing;

// Prices each framework that layouts of a search may resolve to.
using PricingByFramework = ByFramework<std::shared_ptr<const Pricing>>;

}  // namespace stepcast
