// SPDX-License-Identifier: Apache-2.0
// Works of operations for those who walk over their rows (core/rows.h) and ask for no type.
#pragma once

#include <span>

#include "core/rows.h"
#include "operation/operation.h"

namespace stepcast {

struct WorkForm {
  const char* family;
  Rows (*rows)();
  void* (*emplace)(Operation::Work& work);  // returns the struct, of zeros
};
std::span<const WorkForm> work_forms();  // by alternative of Operation::Work

inline const WorkForm& form_of(const Operation::Work& work) { return work_forms()[work.index()]; }
const void* struct_of(const Operation::Work& work);

}  // namespace stepcast
