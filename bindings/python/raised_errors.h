// SPDX-License-Identifier: Apache-2.0
// Errors as Python knows them.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "stepcast/errors.h"

namespace stepcast::python {

// A dict for each error: code, message, file, path, hint.
pybind11::list rows_of(const Errors& errors);

// Raises stepcast.Error. `stated` is the JSON in which the paths of errors lead to values; empty:
// there is none.
[[noreturn]] void raise(const Errors& errors, const std::string& stated = "");

}  // namespace stepcast::python
