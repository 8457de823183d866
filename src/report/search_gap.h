// SPDX-License-Identifier: Apache-2.0
// How far the best that a search found may be from the best that there is.
#pragma once

#include <optional>
#include <string>

namespace stepcast {

struct Prediction;
struct SearchResult;

// The fraction by which the step of `best` is longer than any of the layouts that were not looked
// at can be: 0 of what is proven, nothing where nothing bounds the others.
std::optional<double> gap_of(const SearchResult& result, const Prediction& best);
std::string gap_text(double gap);  // "at most 6 % from the best"
// "at most 6 % from the best", or that nothing is faster. Empty where nothing bounds the others
// and where it is proven.
std::string gap_text(const SearchResult& result, const Prediction& best);

}  // namespace stepcast
