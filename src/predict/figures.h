// SPDX-License-Identifier: Apache-2.0
// The figures of a forecast, declared once: files, tables, pages, comparisons, requirements and the
// table of docs/formats/prediction.md follow from a row. Lists of parts (time, memory, provenance)
// and sentences are not figures.
#pragma once

#include <span>
#include <string_view>

namespace stepcast {

struct Prediction;

enum class FigureUnit { kSeconds, kRate, kFraction, kBytes };

// Stand together in the prediction file. A rank that runs alone has no rates and no use of FLOPs.
enum class FigureGroup { kTime, kRates, kUse, kBubble, kMemory };

// Beside the prediction file, which has all figures.
enum FigureTable : unsigned {
  kForecastRow = 1u << 0,   // the line of predict as CSV
  kComparedRows = 1u << 1,  // lines of compare as CSV
  kPlanRows = 1u << 2,      // lines of plan as CSV
  kOfferRows = 1u << 3,     // lines of plan over clusters as CSV
  kGrid = 1u << 4,          // what stands beside each point or place in a table or on a page
  kRungs = 1u << 5,         // beside each rung of an advice, where it fits
};

enum class Better { kLess, kMore, kNeither };

struct Figure {
  const char* key;    // of files
  const char* title;  // of a column; null where no table has it
  FigureUnit unit;
  FigureGroup group;
  double (*of)(const Prediction& prediction);
  const char* words;  // what it is
  unsigned tables = 0;
  const char* required = nullptr;  // its name in --require
  Better better = Better::kLess;
  // People read this of long sequences (Prediction::reads_causal); null: the same.
  double (*causal)(const Prediction& prediction) = nullptr;
};

std::span<const Figure> figures();
const Figure& figure_of(std::string_view key);  // the key is one of theirs

}  // namespace stepcast
