// SPDX-License-Identifier: Apache-2.0
#include "places.h"

namespace stepcast {

const std::string& source_folder() {
  static const std::string folder = STEPCAST_SOURCE_DIR;
  return folder;
}
const std::string& program_folder() {
  static const std::string folder = STEPCAST_PROGRAM_DIR;
  return folder;
}
const std::string& program_path() {
  static const std::string path = program_folder() + "/stepcast";
  return path;
}

}  // namespace stepcast
