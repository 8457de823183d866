// SPDX-License-Identifier: Apache-2.0
// One visitor from several functions, for std::visit: an alternative that none of them takes fails
// to compile.
#pragma once

namespace stepcast {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace stepcast
