// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <fstream>
#include <iterator>

namespace stepcast {

Result<std::string> read_text_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  // The first byte is asked for apart: only that tells a folder from an empty file.
  stream.peek();
  if (!stream.is_open() || stream.bad()) {
    return failure({ErrorCode::kIo, "cannot be read", file, "", "check the path"});
  }
  return std::string(std::istreambuf_iterator<char>(stream.rdbuf()), {});
}

}  // namespace stepcast
