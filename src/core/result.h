// SPDX-License-Identifier: Apache-2.0
// Errors as values. The only place that names the library behind them.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "core/error.h"

namespace stepcast {

template <class T>
using Result = tl::expected<T, Errors>;

inline tl::unexpected<Errors> failure(Error error) {
  return tl::unexpected<Errors>(Errors{std::move(error)});
}
inline tl::unexpected<Errors> failure(Errors errors) {
  return tl::unexpected<Errors>(std::move(errors));
}

}  // namespace stepcast
