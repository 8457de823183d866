// SPDX-License-Identifier: Apache-2.0
// What continuous integration reads: JUnit XML and GitHub's workflow commands.
#include <fmt/format.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <sstream>

#include "report/check_report.h"
#include "report/number_text.h"

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

ptree suite_node(const std::string& name, std::size_t tests, std::size_t failures,
                 std::size_t errors, std::size_t skipped) {
  ptree node;
  set_attribute(node, "name", name);
  set_attribute(node, "tests", std::to_string(tests));
  set_attribute(node, "failures", std::to_string(failures));
  set_attribute(node, "errors", std::to_string(errors));
  set_attribute(node, "skipped", std::to_string(skipped));
  return node;
}

std::string comparison_text(const CaseResult& result) {
  std::string out;
  if (result.step_time_error) {
    out += fmt::format("step time {} predicted, {} measured, {}",
                       time_text(Seconds(result.predicted->step_time_s)),
                       time_text(Seconds(*result.measured_step_time_s)),
                       signed_percent_text(*result.step_time_error));
  }
  if (result.peak_memory_error) {
    out += fmt::format("{}peak memory {}", out.empty() ? "" : "; ",
                       signed_percent_text(*result.peak_memory_error));
  }
  if (result.bubble_difference) {
    out += fmt::format("{}bubble {:+.3f}", out.empty() ? "" : "; ", *result.bubble_difference);
  }
  return out;
}

ptree case_node(const CaseResult& result) {
  ptree node;
  set_attribute(node, "classname", result.suite);
  set_attribute(node, "name", result.id);
  if (result.failed.empty()) {
    node.put("system-out", comparison_text(result));
  } else {
    ptree& outcome = node.add_child(result.not_supported ? "skipped" : "error", ptree());
    set_attribute(outcome, "message", result.failed);
  }
  return node;
}

ptree gate_node(const GateOutcome& gate) {
  ptree node =
      suite_node("gate", std::max<std::size_t>(gate.broken.size(), 1), gate.broken.size(), 0, 0);
  if (gate.broken.empty()) {
    ptree& passed = node.add_child("testcase", ptree());
    set_attribute(passed, "classname", "gate");
    set_attribute(passed, "name", "every limit is kept");
  }
  for (const Finding& finding : gate.broken) {
    ptree& test = node.add_child("testcase", ptree());
    set_attribute(test, "classname", "gate");
    set_attribute(test, "name", finding.title);
    set_attribute(test.add_child("failure", ptree()), "message", finding.message);
  }
  return node;
}

// GitHub reads % and line ends as its own escapes.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else {
      out += c;
    }
  }
  return out;
}

std::string escaped_property(std::string_view text) {
  std::string out;
  for (const char c : escaped(text)) {
    if (c == ':') {
      out += "%3A";
    } else if (c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

std::map<std::string, std::vector<const CaseResult*>> by_suite(const CheckReport& report) {
  std::map<std::string, std::vector<const CaseResult*>> out;
  for (const CaseResult& result : report.cases) out[result.suite].push_back(&result);
  return out;
}

}  // namespace

std::string check_junit(const CheckReport& report, const GateOutcome& gate) {
  ptree root;
  ptree& suites = root.add_child("testsuites", ptree());
  set_attribute(suites, "name", "stepcast check");
  for (const auto& [name, cases] : by_suite(report)) {
    std::size_t errors = 0, skipped = 0;
    for (const CaseResult* result : cases) {
      if (!result->failed.empty()) ++(result->not_supported ? skipped : errors);
    }
    ptree& suite =
        suites.add_child("testsuite", suite_node(name, cases.size(), 0, errors, skipped));
    for (const CaseResult* result : cases) suite.add_child("testcase", case_node(*result));
  }
  suites.add_child("testsuite", gate_node(gate));
  std::ostringstream out;
  boost::property_tree::write_xml(
      out, root, boost::property_tree::xml_writer_make_settings<std::string>(' ', 1));
  return out.str();
}

std::string check_github(const CheckReport& report, const GateOutcome& gate) {
  std::string out;
  for (const Finding& finding : gate.broken) {
    out += fmt::format("::error title={}::{}\n", escaped_property(finding.title),
                       escaped(finding.message));
  }
  for (const auto& [name, cases] : by_suite(report)) {
    std::size_t failed = 0;
    const CaseResult* first = nullptr;
    for (const CaseResult* result : cases) {
      if (result->failed.empty()) continue;
      ++failed;
      if (!first) first = result;
    }
    if (!first) continue;
    out += fmt::format("::warning title={}::{} of {} cases not predicted; {}: {}\n",
                       escaped_property(name), failed, cases.size(), escaped(first->id),
                       escaped(first->failed));
  }
  const ErrorStatistics& time = report.summary.all.step_time;
  out += fmt::format("::notice title=stepcast check::{} cases, step time mean error {}, max {}\n",
                     report.summary.all.count, escaped(percent_text(time.mean_abs)),
                     escaped(percent_text(time.max_abs)));
  return out;
}

}  // namespace stepcast
