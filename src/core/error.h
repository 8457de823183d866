// SPDX-License-Identifier: Apache-2.0
// Tells what is wrong with the user's input, and where. An input error names the file, the key path
// (or flag), the value, what is accepted and the nearest match; every error of a file is listed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

enum class ErrorCode {
  kIo,            // a file that cannot be read or written
  kSyntax,        // not JSON
  kFormat,        // another format number, or not a file of this kind
  kUnknownKey,    // a key that nothing reads
  kMissingKey,    // a required key
  kWrongType,     // text where a number is due
  kBadValue,      // the right type, out of range or not one of the accepted values
  kBadUnit,       // "80" or "80 Gib" where "80 GiB" is due
  kNotFound,      // no model, cluster or profile of this name
  kIllegal,       // values that are fine alone and contradict each other
  kNotSupported,  // legal, and not modelled yet
  kTooMuch,       // of memory, by the limit that holds (core/work_limits.h)
};

struct Error {
  ErrorCode code = ErrorCode::kBadValue;
  std::string message;  // a sentence that contains the value
  std::string file;     // empty for the command line
  std::string path;     // "layout.tp", or "--tp"
  std::string hint;     // what is accepted; "did you mean ...?"
};

using Errors = std::vector<Error>;

// "scenario.json: layout.tp: 3 does not divide 32 heads (use 1, 2, 4, 8, 16 or 32)"
std::string to_string(const Error& error);
std::string to_string(const Errors& errors);  // one line each

// "did you mean 'hidden'?" for the candidate nearest to `word`, or "" when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "a, b or c"
std::string one_of(const std::vector<std::string>& values);

}  // namespace stepcast
