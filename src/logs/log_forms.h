// SPDX-License-Identifier: Apache-2.0
// The lines of training logs that tell something, one row each. Lines are known by words in them,
// quantities by the label beside them, because fields and their order change between releases.
// docs/import-logs.md names the releases.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stepcast {

// The quantities that logs state.
enum class LogQuantity {
  kStep,
  kTotalSteps,
  kSeconds,  // of a step
  kStepsPerSecond,
  kSamplesPerSecond,
  kTokensPerSecond,
  kTokensPerSecondPerGpu,
  kRunSeconds,  // of the run, with all that is in it
  kClock,       // in seconds
  kSamples,     // so far
  kGlobalBatch,
  kMicroBatch,
  kSequence,
  kTokensPerStep,
  kGpus,
  kTp,
  kPp,
  kCp,
  kEp,
  kReplicas,
  kShards,
  kVocab,
  kAllocated,  // bytes, the most
  kReserved,
  kAfterSteps,
  kLoss,
  kSkipped,
  kNotNumbers,  // steps whose loss is none
  kQuantities   // how many there are
};

// The tools that print steps. Where a log has steps of several, the first of them counts.
enum class LogSource {
  kMegatron,
  kNemo,
  kBridge,
  kAutomodel,
  kTorchtitan,
  kComposer,
  kMaxText,
  kMlperfBlocks,
  kMlperf,
  kDeepSpeed,
  kOlderDeepSpeed,
  kTrainerRate,
  kTrainerBar,
  kTrainerSummary,
  kTable,
  kSources  // how many there are
};

struct LogTool {
  const char* name;
  bool runs_inside = false;       // beside the log of another
  const char* assumed = nullptr;  // what its figures leave open, in the words of a suite's case
  bool tells_once = false;        // of the whole run
};
const LogTool& tool_of(LogSource source);

enum class LogLineKind {
  kTellsStep,
  kHeading,      // of a step, whose figures follow on lines of their own
  kUnder,        // such a line
  kMemory,       // of one rank
  kSettings,     // of the run
  kBlockBegins,  // training between two evaluations
  kBlockEnds,
  kStarts,   // training begins, or goes on from a checkpoint
  kDisturbs  // the step that follows is slow, or cheap
};

struct LogField {
  LogQuantity quantity;
  const char* label;
  double scale = 1;
  bool is_in_front = false;  // the label is a unit behind the number
};

struct LogForm {
  LogSource source;
  LogLineKind kind;
  std::vector<const char*> words;  // that the line has, in this order
  std::vector<LogField> fields = {};
  const char* without = nullptr;      // a word that it has not
  bool begins_with_a_number = false;  // "100%|", with nothing in front
};

std::span<const LogForm> log_forms();

// Whether a line is of this form.
bool is_of(const LogForm& form, std::string_view line);

// Settings that a log prints in full, as the importer of launch files reads them.
struct LogBlock {
  const char* format;  // `import --from`
  const char* begins;  // a word of its first line
  const char* ends;    // a word of its last line; null: braces tell
};
std::span<const LogBlock> log_blocks();

// A column of a table: its name, or the end of one ("RUN - iteration-time").
struct LogColumn {
  const char* name;
  LogQuantity quantity;
  double scale = 1;
};
std::span<const LogColumn> log_columns();

}  // namespace stepcast
