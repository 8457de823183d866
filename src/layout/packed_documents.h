// SPDX-License-Identifier: Apache-2.0
// Documents packed into rows of tokens, where attention sees no other document than its own.
#pragma once

namespace stepcast {

struct Scenario;

// Lengths L are taken as log-normal. Documents follow each other, and rows of S tokens are cut from
// them wherever they end.
struct PackedRows {
  // A row has S * span / 2 pairs of a query and a key, half the sum of the squares of its pieces.
  // A document of L tokens that begins anywhere gives a row S L^2 - L^3 / 3 where it is the shorter
  // of the two, and 2 S^3 / 3 + (L - S) S^2 otherwise; with m = min(L, S)
  //   span = (E[m^2] - E[m^3] / (3 S) + S (E[L] - E[m])) / E[L].
  double span;
  // Standard deviation of a row's pairs over their mean, of rows with many documents: that of a
  // renewal process with rewards (Smith, Proc. Royal Society A 232, 1955),
  // Var(m^2 - r m) / (E[m] S) with r = E[m^2] / E[m], over r^2.
  double deviation;
};

bool packs_documents(const Scenario& scenario);

// `mean` and `deviation` of the documents' lengths and the row's, all in tokens.
PackedRows pack_documents(double mean, double deviation, double row);

// The span of a scenario that packs documents.
double document_span(const Scenario& scenario);

// The time of attention on the busiest data parallel rank over the mean, at least 1. Ranks wait for
// each other once a step, or with gathered parameters (zero 3) once a micro-batch.
double busiest_attention(const Scenario& scenario);

}  // namespace stepcast
