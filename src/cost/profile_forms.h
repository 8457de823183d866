// SPDX-License-Identifier: Apache-2.0
// The fitted forms of a profile as JSON, by the rows of their structs (cost/profile.h;
// docs/formats/profile.md).
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/json_tree.h"
#include "core/rows.h"
#include "cost/profile.h"

namespace stepcast {

// Four digits: less than any error of a fit, and the same for every compiler.
double rounded(double value);
std::string microseconds(double seconds);

Json write_form(const Rows& rows, const void* form);
template <class Form>
Json write_form(const Form& form) {
  return write_form(Form::fields(), &form);
}

}  // namespace stepcast
