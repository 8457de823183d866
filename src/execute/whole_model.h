// SPDX-License-Identifier: Apache-2.0
// All parameters of the model in one piece, put together from what ranks own. Two layouts of one
// model are compared by it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/role_runner.h"

namespace stepcast {

class WholeModel {
 public:
  // Adds the parameters that `runner`'s rank owns. The copies of a shared table count as one.
  void take(RoleRunner& runner);

  bool operator==(const WholeModel&) const = default;
  // sqrt(sum (a - b)^2 / sum b^2) over all elements that a rank owns; infinite where `reference`
  // lacks a parameter or a value is not finite.
  static double relative_error(RoleRunner& runner, const WholeModel& reference);

  double relative_error(const WholeModel& reference) const;

  std::size_t elements() const;

  // One file of this machine's byte order; throws std::runtime_error with the reason.
  void save(const std::string& file) const;
  static WholeModel load(const std::string& file);

 private:
  using Key = std::pair<std::int64_t, std::string>;  // layer, name
  std::map<Key, std::vector<float>> parameters_;
};

}  // namespace stepcast
