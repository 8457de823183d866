// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <fstream>
#include <iterator>

namespace stepcast {

Result<std::string> read_text_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  // Reading the first byte apart is the only way to tell a folder from an empty file.
  stream.peek();
  if (!stream.is_open() || stream.bad()) {
    return failure({ErrorCode::kIo, "cannot be read", file, "", "check the path"});
  }
  return std::string(std::istreambuf_iterator<char>(stream.rdbuf()), {});
}

}  // namespace stepcast
