// SPDX-License-Identifier: Apache-2.0
#include "raised_errors.h"

namespace stepcast::python {

namespace py = pybind11;

namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kSyntax:
      return "syntax";
    case ErrorCode::kFormat:
      return "format";
    case ErrorCode::kUnknownKey:
      return "unknown_key";
    case ErrorCode::kMissingKey:
      return "missing_key";
    case ErrorCode::kWrongType:
      return "wrong_type";
    case ErrorCode::kBadValue:
      return "bad_value";
    case ErrorCode::kBadUnit:
      return "bad_unit";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kIllegal:
      return "illegal";
    case ErrorCode::kNotSupported:
      return "not_supported";
    case ErrorCode::kTooMuch:
      return "too_much";
  }
  return "bad_value";
}

}  // namespace

py::list rows_of(const Errors& errors) {
  py::list out;
  for (const Error& error : errors) {
    py::dict row;
    row["code"] = name_of(error.code);
    row["message"] = error.message;
    row["file"] = error.file;
    row["path"] = error.path;
    row["hint"] = error.hint;
    out.append(row);
  }
  return out;
}

void raise(const Errors& errors, const std::string& stated) {
  const py::object type = py::module_::import("stepcast.errors").attr("Error");
  const py::object error = type.attr("of")(rows_of(errors), stated);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace stepcast::python
