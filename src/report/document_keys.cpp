// SPDX-License-Identifier: Apache-2.0
#include "report/document_keys.h"

#include "cluster/fabric.h"
#include "economics/prices.h"
#include "validate/rank_file.h"
#include "validate/suite.h"
#include "validate/validation_baseline.h"

namespace stepcast {

std::vector<DeclaredKey> document_keys() {
  std::vector<DeclaredKey> out;
  for (const auto& keys : {declared_keys<Fabric>("cluster."), declared_keys<Suite>("suite."),
                           declared_keys<Price>("prices."), declared_keys<RankFile>("rank."),
                           declared_keys<ValidationBaseline>("validation_baseline.")}) {
    out.insert(out.end(), keys.begin(), keys.end());
  }
  return out;
}

}  // namespace stepcast
