// SPDX-License-Identifier: Apache-2.0
// How much of anything an input may hold. Every reader of foreign text keeps to these, so that no
// file can exhaust the memory, the stack or the patience of whoever reads it. What only one kind of
// file has (layers of a model, GPUs of a cluster) is limited where that kind is read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast {

// The largest file that ships is a suite of 0.7 MB. JSON in memory takes up to twenty times the
// bytes of its text.
inline constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
// A trace of some steps on one GPU has hundreds of MB; its events are dropped as they are read.
inline constexpr std::int64_t kMostTraceBytes = std::int64_t{4} << 30;

// Another tool launches with it: a script, settings, a manifest. Kubernetes takes no larger one.
inline constexpr std::int64_t kMostScriptBytes = std::int64_t{1} << 20;

// A log of a long run on many ranks is read line by line, and only its steps are kept.
inline constexpr std::int64_t kMostLogBytes = std::int64_t{64} << 30;
inline constexpr std::size_t kLongestLogLine = std::size_t{1} << 18;
inline constexpr std::size_t kMostLoggedSteps = std::size_t{1} << 20;

// Levels of brackets in JSON, TOML and YAML, and parts of a key path. No format of ours has ten.
inline constexpr std::size_t kDeepestDocument = 64;

// A pipe may send its text slowly. When nothing has come for this long, nobody is there.
inline constexpr double kLongestSilence_s = 30;

// Errors of one file that are kept, and that are listed: the first ones tell what is wrong.
inline constexpr std::size_t kMostErrorsKept = 1000;
inline constexpr std::size_t kMostErrorsListed = 50;
// Bytes of one part of an error: of its path, its message or its hint.
inline constexpr std::size_t kLongestErrorPart = 2000;
// Bytes of a value that an error quotes beside the reason.
inline constexpr std::size_t kLongestQuote = 60;
// Letters of a word for which a near one is looked for.
inline constexpr std::size_t kLongestWord = 100;

// Bounds of a quantity in a file, which may also be 0. Beyond these it is a mistake, and times and
// sizes that are made of it would leave the range of numbers.
struct QuantityLimits {
  double least, most;
  const char* unit;
};
inline constexpr QuantityLimits kBytesLimits{1e-3, 1e18, "B"};
inline constexpr QuantityLimits kRateLimits{1, 1e18, "B/s"};
inline constexpr QuantityLimits kSecondsLimits{1e-15, 1e12, "s"};  // up to 30,000 years
inline constexpr QuantityLimits kFlopsLimits{1e3, 1e24, "FLOP/s"};

}  // namespace stepcast
