// SPDX-License-Identifier: Apache-2.0
// An XML file as elements with attributes. Text between elements is left out: the files that are
// read here have none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<XmlElement> children;

  bool has(const std::string& key) const { return attributes.contains(key); }
  std::string text(const std::string& key) const;  // empty where it is not stated
};

// The root element. `file` is its name in errors. Elements may be nested 64 deep.
Result<XmlElement> parse_xml(std::string_view text, const std::string& file);

}  // namespace stepcast
