// SPDX-License-Identifier: Apache-2.0
// Says what published tables and rules name that is not there: a device, a table of products, an
// earlier fit of attention.
#pragma once

#include <map>
#include <string>

#include "calibrate/fit/published.h"
#include "cluster/accelerator.h"
#include "core/error.h"

namespace stepcast {

Errors check_published(const Published& published,
                       const std::map<std::string, Accelerator>& accelerators);

}  // namespace stepcast
