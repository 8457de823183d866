// SPDX-License-Identifier: Apache-2.0
// The fitted forms of a profile as JSON, read and written by the fields() of their structs
// (cost/profile.h; docs/formats/profile.md).
#pragma once

#include <string>

#include "core/json.h"
#include "core/json_fwd.h"

namespace stepcast {

// Four digits: less than any error of a fit, and the same for every compiler.
double rounded(double value);
std::string microseconds(double seconds);

// The keys that the object has, over what `form` holds. Errors go to the reader's document.
template <class Form>
void read_fields(ObjectReader& reader, Form& form);
template <class Form>
Form read_form(const JsonValue& value) {
  ObjectReader reader(value);
  Form out;
  read_fields(reader, out);
  reader.finish();
  return out;
}

template <class Form>
Json write_form(const Form& form);

}  // namespace stepcast
