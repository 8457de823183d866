// SPDX-License-Identifier: Apache-2.0
// Scenarios from files, and back.
#pragma once

#include "core/json_fwd.h"
#include "core/result.h"
#include "layout/data_folders.h"

namespace stepcast {

class JsonDocument;
struct Scenario;

// Reads and checks a scenario document: defaults, legality, "not supported yet". All errors of the
// file are returned together. (`set` overrides and short flags are applied to the JSON before.)
Result<Scenario> read_scenario(JsonDocument& document, const DataFolders& folders);

// Accepts a scenario that need not be forecast, too: it may have what is only not supported yet, as
// far as a Scenario has a field for it.
Result<Scenario> read_legal_scenario(JsonDocument& document, const DataFolders& folders);

// The resolved scenario as JSON text (format 1), every default filled in.
SortedJson to_json(const Scenario& scenario);

}  // namespace stepcast
