// SPDX-License-Identifier: Apache-2.0
// A model from JSON text, with the errors that reading it gave.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/json.h"
#include "model/import_model.h"
#include "model/model.h"

namespace stepcast {

struct Reading {
  Model model;
  Errors errors;
  std::string text() const { return to_string(errors); }
};

inline Reading read_text(std::string_view json, const std::string& assume_family = "") {
  auto document = JsonDocument::parse(json, "model.json");
  if (!document) return {Model{}, document.error()};
  Reading reading;
  reading.model = read_model((*document)->root(), assume_family);
  reading.errors = (*document)->errors();
  return reading;
}

inline Model model_of(std::string_view json, const std::string& assume_family = "") {
  const Reading reading = read_text(json, assume_family);
  EXPECT_TRUE(reading.errors.empty()) << reading.text();
  return reading.model;
}

// The one error of a text that has exactly one.
inline Error error_of(std::string_view json, const std::string& assume_family = "") {
  const Reading reading = read_text(json, assume_family);
  EXPECT_EQ(reading.errors.size(), 1u) << json << "\n" << reading.text();
  return reading.errors.empty() ? Error{} : reading.errors.front();
}

}  // namespace stepcast
