// SPDX-License-Identifier: Apache-2.0
// Sections of a page about a comparison.
#pragma once

#include "report/compare_report.h"
#include "report/html/page.h"

namespace stepcast::html {

// "+3.21 %", or "0 %" for a change that would round to it.
std::string change_text(double share);

Section files_section(const CompareReport& report);        // the keys in which they differ
Section points_section(const CompareReport& report);       // every point of the grid in a row
Section differences_section(const CompareReport& report);  // against the first place, by part
Section scaling_section(const CompareReport& report);      // over the GPUs
Section tornado_section(const CompareReport& report);      // by resource
Section pipelines_section(const CompareReport& report);    // those with slices, on one time axis
Section what_if_section(const CompareReport& report);      // without and with the change

}  // namespace stepcast::html
