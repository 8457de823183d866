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

// A tag that begins at `at` ends behind the first '>' that stands in no quotes.
std::size_t end_of_tag(std::string_view text, std::size_t at) {
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      return at + 1;
    }
  }
  return text.size();
}

std::size_t behind(std::string_view text, std::string_view mark, std::size_t from) {
  const std::size_t at = text.find(mark, from);
  return at == text.npos ? text.size() : at + mark.size();
}

// The library calls itself for each element within another, so a file nested a million deep would
// end the program.
std::ptrdiff_t deepest_nesting(std::string_view text) {
  std::ptrdiff_t depth = 0, most = 0;
  for (std::size_t at = text.find('<'); at < text.size(); at = text.find('<', at)) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("<!--")) {
      at = behind(text, "-->", at + 4);
    } else if (rest.starts_with("<![CDATA[")) {
      at = behind(text, "]]>", at);
    } else if (rest.starts_with("<?")) {
      at = behind(text, "?>", at);
    } else {
      const std::size_t end = end_of_tag(text, at);
      const bool is_whole = end >= 2 && text[end - 2] == '/';
      if (rest.starts_with("</")) {
        --depth;
      } else if (!is_whole && !rest.starts_with("<!")) {
        ++depth;
      }
      most = std::max(most, depth);
      at = end;
    }
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
  // The bracketed part of a document type could hide elements from the count below.
  if (text.find("<!DOCTYPE") != text.npos) {
    return failure({ErrorCode::kFormat, "has a document type, which NCCL's files do not have", file,
                    "", "a file that NCCL_TOPO_DUMP_FILE wrote; hwloc's are others"});
  }
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
