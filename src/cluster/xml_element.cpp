// SPDX-License-Identifier: Apache-2.0
#include "cluster/xml_element.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cstddef>
#include <sstream>
#include <utility>

namespace stepcast {
namespace {

using boost::property_tree::ptree;

constexpr std::ptrdiff_t kDeepest = 64;

// The library calls itself for each element within another, so a file nested a million deep would
// end the program. Tags that text or a comment holds count too, which real files do not have.
std::ptrdiff_t deepest_nesting(std::string_view text) {
  std::ptrdiff_t depth = 0, most = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '<') {
      if (text[i + 1] == '/') --depth;
      if (text[i + 1] != '/' && text[i + 1] != '?' && text[i + 1] != '!') ++depth;
    }
    if (text[i] == '/' && text[i + 1] == '>') --depth;
    most = std::max(most, depth);
  }
  return most;
}

XmlElement element_of(const std::string& name, const ptree& tree) {
  XmlElement out;
  out.name = name;
  for (const auto& [key, child] : tree) {
    if (key == "<xmlattr>") {
      for (const auto& [attribute, value] : child) out.attributes[attribute] = value.data();
    } else if (key != "<xmlcomment>") {
      out.children.push_back(element_of(key, child));
    }
  }
  return out;
}

}  // namespace

std::string XmlElement::text(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? "" : found->second;
}

Result<XmlElement> parse_xml(std::string_view text, const std::string& file) {
  if (deepest_nesting(text) > kDeepest) {
    return failure({ErrorCode::kSyntax,
                    fmt::format("elements are nested more than {} deep", kDeepest), file, "", ""});
  }
  ptree tree;
  try {
    std::istringstream stream{std::string(text)};
    boost::property_tree::read_xml(stream, tree, boost::property_tree::xml_parser::no_comments);
  } catch (const boost::property_tree::xml_parser_error& error) {
    return failure({ErrorCode::kSyntax,
                    fmt::format("line {}: this is no XML: {}", error.line(), error.message()), file,
                    "", ""});
  }
  if (tree.size() != 1) {
    return failure(
        {ErrorCode::kSyntax,
         tree.empty() ? "there is no XML element" : "there is more than one element at the top",
         file, "", ""});
  }
  return element_of(tree.front().first, tree.front().second);
}

}  // namespace stepcast
