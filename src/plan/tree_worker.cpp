// SPDX-License-Identifier: Apache-2.0
#include "plan/tree_worker.h"

namespace stepcast {

Node TreeWorker::bounded(const LayoutChoice& part, std::size_t depth) {
  subtrees_.enter(part);
  const SubtreeBound bound = subtrees_.bound(part);
  return {{bound.time_s, bound.device_bytes, part}, bound.any_time_s, depth};
}

Expansion TreeWorker::expand_branch(const LayoutChoice& branch, const Space::Ends& ends) {
  Expansion out;
  std::vector<LayoutChoice> parts;
  bool cut_short = false;
  const auto is_over = [&] {
    cut_short = cut_short || ends();
    return cut_short;
  };
  out.count = space_.walk_to(
      subtrees_.depths().front(), branch, scenario_,
      [&](const LayoutChoice& choice) { parts.push_back(choice); }, is_over);
  for (const LayoutChoice& part : parts) {
    if (is_over()) break;
    out.nodes.push_back(bounded(part, 0));
  }
  out.whole = !cut_short;
  return out;
}

Expansion TreeWorker::expand(const Node& node) {
  Expansion out;
  out.whole = true;
  const std::size_t depth = node.depth + 1;
  if (depth == subtrees_.depths().size()) {
    out.count = space_.walk(node.choice, scenario_, [&](const LayoutChoice& choice) {
      const Bound bound = bounds_.bound();
      out.nodes.push_back({{bound.time_s, bound.device_bytes, choice}, bound.time_s, depth, true});
    });
    return out;
  }
  std::vector<LayoutChoice> parts;
  out.count = space_.walk_to(subtrees_.depths()[depth], node.choice, scenario_,
                             [&](const LayoutChoice& choice) { parts.push_back(choice); });
  for (const LayoutChoice& part : parts) out.nodes.push_back(bounded(part, depth));
  return out;
}

}  // namespace stepcast
