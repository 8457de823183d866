// SPDX-License-Identifier: Apache-2.0
#include "layout/packed_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/largest_normal.h"
#include "layout/keys.h"
#include "layout/layout.h"
#include "layout/legality.h"
#include "layout/scenario.h"
#include "layout/training.h"

namespace stepcast {
namespace {

double below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }  // standard normal

// E[min(L, row)^k], k = 0 to 4, of log-normal lengths L.
std::array<double, 5> moments(double mean, double deviation, double row) {
  std::array<double, 5> out{};
  const double variance = std::log1p(deviation * deviation / (mean * mean));
  const double spread = std::sqrt(variance), center = std::log(mean) - variance / 2;
  const double end = std::log(row);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double order = static_cast<double>(k);
    if (variance == 0) {
      out[k] = std::pow(std::min(mean, row), order);
      continue;
    }
    const double whole = std::exp(order * center + order * order * variance / 2);
    out[k] = whole * below((end - center - order * variance) / spread) +
             std::pow(row, order) * below((center - end) / spread);
  }
  return out;
}

PackedRows packed_rows(const Scenario& scenario) {
  const Training& t = scenario.training;
  return pack_documents(static_cast<double>(t.document_length),
                        static_cast<double>(t.document_deviation),
                        static_cast<double>(t.sequence_length));
}

}  // namespace

PackedRows pack_documents(double mean, double deviation, double row) {
  const std::array<double, 5> m = moments(mean, deviation, row);
  const double span = m[2] / mean - m[3] / (3 * row * mean) + row * (1 - m[1] / mean);
  const double whole = m[2] / m[1];
  const double variance = std::max(0.0, m[4] - 2 * whole * m[3] + whole * whole * m[2]);
  return {span, std::sqrt(variance / (m[1] * row)) / whole};
}

bool packs_documents(const Scenario& scenario) { return scenario.training.document_length > 0; }

double document_span(const Scenario& scenario) { return packed_rows(scenario).span; }

double busiest_attention(const Scenario& scenario) {
  const Training& t = scenario.training;
  const Layout& l = scenario.layout;
  if (!packs_documents(scenario) || l.dp == 1) return 1;
  const PackedRows packed = packed_rows(scenario);
  const bool meets_often = l.zero == 3;
  const std::int64_t rows = meets_often ? l.micro_batch : t.global_batch / l.dp;
  const double factor = 1 + largest_normal(l.dp) * packed.deviation /
                                std::sqrt(static_cast<double>(std::max<std::int64_t>(rows, 1)));
  return std::min(factor, std::max(1.0, static_cast<double>(t.sequence_length) /
                                            packed.span));  // one document that fills the row
}

void check_documents(const Scenario& s, const Stated& stated, Findings& findings) {
  const Training& t = s.training;
  if (t.document_length == 0) {
    if (stated.has("training.document_deviation") &&
        findings.trusts({"training.document_length"})) {
      findings.illegal("training.document_deviation", "documents have no mean length",
                       "state training.document_length, too");
    }
    return;
  }
  if (!findings.trusts({"training.document_length", "training.sequence_length"})) return;
  if (t.document_length > t.sequence_length) {
    findings.illegal("training.document_length",
                     fmt::format("{} tokens in rows of {}", t.document_length, t.sequence_length),
                     fmt::format("{} or less", t.sequence_length));
  }
  if (!findings.trusts({"training.attention", "training.attention_kernel"})) return;
  if (t.attention == AttentionKernel::kUnfused) {
    findings.illegal("training.document_length",
                     "unfused attention multiplies whole rows and masks other documents",
                     "attention flash, or leave it out");
  }
}

}  // namespace stepcast
