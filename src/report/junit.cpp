// SPDX-License-Identifier: Apache-2.0
#include "report/junit.h"

#include <algorithm>

#include "report/html/markup.h"

namespace stepcast {
namespace {

using html::element;
using html::Html;

Html on_its_line(const Html& node, const char* indent) {
  return html::text(indent) + node + html::text("\n");
}

Html case_node(const JunitCase& test) {
  Html inside;
  if (test.outcome == JunitOutcome::kPassed) {
    if (!test.text.empty()) inside = element("system-out", {}, test.text);
  } else {
    const char* name = test.outcome == JunitOutcome::kFailed    ? "failure"
                       : test.outcome == JunitOutcome::kSkipped ? "skipped"
                                                                : "error";
    inside = element(name, {{"message", test.text}});
  }
  return element("testcase", {{"classname", test.suite}, {"name", test.name}}, inside);
}

Html suite_node(const JunitSuite& suite) {
  const auto count = [&](JunitOutcome outcome) {
    return std::to_string(
        std::count_if(suite.cases.begin(), suite.cases.end(),
                      [&](const JunitCase& test) { return test.outcome == outcome; }));
  };
  Html cases = html::text("\n");
  for (const JunitCase& test : suite.cases) cases += on_its_line(case_node(test), "  ");
  return element("testsuite",
                 {{"name", suite.name},
                  {"tests", std::to_string(suite.cases.size())},
                  {"failures", count(JunitOutcome::kFailed)},
                  {"errors", count(JunitOutcome::kError)},
                  {"skipped", count(JunitOutcome::kSkipped)}},
                 cases + html::text(" "));
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

Written junit_xml(const std::string& name, const std::vector<JunitSuite>& suites) {
  Html all = html::text("\n");
  for (const JunitSuite& suite : suites) all += on_its_line(suite_node(suite), " ");
  return Written::escaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n" +
                          element("testsuites", {{"name", name}}, all).markup() + "\n");
}

}  // namespace stepcast
