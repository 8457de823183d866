// SPDX-License-Identifier: Apache-2.0
// The points that a calibration has finished, one JSON line each, on the disk before the next one
// begins: a run that is killed loses only its present point, and the next run finds the others.
//
//   {"stepcast_journal": 2, "machine": {...}, "crc32": "..."}
//   {"key": "gemm forward 512 768 768", "measurement": {...}, "extra": {...}, "crc32": "..."}
//
// Points are of one machine, and one process writes at a time. A last line that the end of a run
// has cut off is dropped when the file is opened, and so is the rest of a write that failed. Every
// other line must have the checksum of what stands in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "calibrate/protocol/protocol.h"
#include "core/json_tree.h"
#include "core/result.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct JournalPoint {
  std::string key;
  Measurement measurement;
  Json extra = Json::object();  // the caller's

  static Rows fields();
};

class Journal {
 public:
  // Makes the file, or reads it. `machine` is an object; a file of another one is refused, with the
  // first key that differs.
  static Result<Journal> open(const std::string& file, const Json& machine);
  // Tells what is wrong with the lines of a file that open() would read, of whatever machine;
  // nothing if there is no file. It is for whoever starts the run that opens it.
  static Errors check(const std::string& file);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  const JournalPoint* find(const std::string& key) const;  // null: not yet
  std::size_t size() const { return points_.size(); }

  // Returns once it is on the disk. A key that is there already is replaced. After an error the
  // journal holds what it held before.
  Result<void> append(const JournalPoint& point);

 private:
  Journal(std::string name, int file) : name_(std::move(name)), file_(file) {}
  Result<void> read(const std::string& text, const Json& machine);
  Result<void> write_line(const std::string& line);

  std::string name_;
  int file_ = -1;
  std::int64_t size_bytes_ = 0;  // of its whole lines
  std::map<std::string, JournalPoint> points_;
};

}  // namespace stepcast
