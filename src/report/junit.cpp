// SPDX-License-Identifier: Apache-2.0
#include "report/junit.h"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

namespace stepcast {
namespace {

using boost::property_tree::ptree;

// XML 1.0 has no form for control characters.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = '?';
  }
  return text;
}

void set_attribute(ptree& node, const char* name, const std::string& value) {
  node.put(ptree::path_type(std::string("<xmlattr>|") + name, '|'), printable(value));
}

ptree case_node(const JunitCase& test) {
  ptree node;
  set_attribute(node, "classname", test.suite);
  set_attribute(node, "name", test.name);
  if (test.outcome == JunitOutcome::kPassed) {
    if (!test.text.empty()) node.put("system-out", printable(test.text));
    return node;
  }
  const char* name = test.outcome == JunitOutcome::kFailed    ? "failure"
                     : test.outcome == JunitOutcome::kSkipped ? "skipped"
                                                              : "error";
  set_attribute(node.add_child(name, ptree()), "message", test.text);
  return node;
}

ptree suite_node(const JunitSuite& suite) {
  const auto count = [&](JunitOutcome outcome) {
    return std::to_string(
        std::count_if(suite.cases.begin(), suite.cases.end(),
                      [&](const JunitCase& test) { return test.outcome == outcome; }));
  };
  ptree node;
  set_attribute(node, "name", suite.name);
  set_attribute(node, "tests", std::to_string(suite.cases.size()));
  set_attribute(node, "failures", count(JunitOutcome::kFailed));
  set_attribute(node, "errors", count(JunitOutcome::kError));
  set_attribute(node, "skipped", count(JunitOutcome::kSkipped));
  for (const JunitCase& test : suite.cases) node.add_child("testcase", case_node(test));
  return node;
}

}  // namespace

JunitSuite junit_gate(const std::vector<Finding>& broken) {
  JunitSuite out{"gate", {}};
  for (const Finding& finding : broken) {
    out.cases.push_back({"gate", finding.title, JunitOutcome::kFailed, finding.message});
  }
  if (broken.empty()) {
    out.cases.push_back({"gate", "every limit is kept", JunitOutcome::kPassed, ""});
  }
  return out;
}

std::string junit_xml(const std::string& name, const std::vector<JunitSuite>& suites) {
  ptree root;
  ptree& all = root.add_child("testsuites", ptree());
  set_attribute(all, "name", name);
  for (const JunitSuite& suite : suites) all.add_child("testsuite", suite_node(suite));
  std::ostringstream out;
  boost::property_tree::write_xml(
      out, root, boost::property_tree::xml_writer_make_settings<std::string>(' ', 1));
  return out.str();
}

}  // namespace stepcast
