// SPDX-License-Identifier: Apache-2.0
// The folders of shipped data.
#pragma once

#include <string>

namespace stepcast {

struct Rows;  // core/rows.h

struct DataFolders {
  std::string models;
  std::string topologies;
  std::string profiles;
  std::string prices = {};

  static Rows fields();
};

}  // namespace stepcast
