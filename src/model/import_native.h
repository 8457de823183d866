// SPDX-License-Identifier: Apache-2.0
// The native model object, both ways: docs/formats/model.md lists its keys.
#pragma once

#include "core/json_fwd.h"

namespace stepcast {

struct Model;

Model read_native_model(const JsonValue& value);

// The object that reads back as this model; a trait that is as the form has it is left out.
SortedJson to_native_json(const Model& model);

}  // namespace stepcast
