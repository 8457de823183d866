// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <variant>

#include "execute/operation_call.h"

namespace stepcast {

template <class Runner, class Work>
concept RunsWork = requires(Runner& runner, const Work& work) {
  runner.run(work);
};

// Runs the operation by `Runner(call).run(work)` where the Runner has an overload for its work. An
// overload may return false: it leaves the operation to others. Without one nothing runs, and the
// answer is false.
template <class Runner>
bool run_by_kind(const OperationCall& call) {
  return std::visit(
      [&](const auto& work) {
        using Work = std::decay_t<decltype(work)>;
        if constexpr (!RunsWork<Runner, Work>) {
          return false;
        } else if constexpr (std::is_void_v<decltype(Runner(call).run(work))>) {
          Runner(call).run(work);
          return true;
        } else {
          return Runner(call).run(work);
        }
      },
      call.operation.work);
}

}  // namespace stepcast
