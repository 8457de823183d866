// SPDX-License-Identifier: Apache-2.0
// A rank's last words: how its work went wrong, also where memory ends and no exception may leave
// (core/out_of_memory.h).
#pragma once

#include <cstdlib>
#include <new>
#include <system_error>

#include "calibrate/measure/job_failure.h"
#include "comm/communicator.h"
#include "core/out_of_memory.h"
#include "launch/rank_report.h"

namespace stepcast {

inline constexpr const char* kNoMemory = "no memory left for another buffer";

// `report` must outlive the process's work.
inline void tell_when_memory_ends(RankReporter& report) {
  static RankReporter* teller = nullptr;
  teller = &report;
  end_without_memory([] { teller->failed(RankFailure::kOutOfMemory, kNoMemory); }, 1);
}

// Does the work and returns 0. Otherwise it tells of the failure and ends without waiting for ranks
// that will not come: mpirun ends them.
template <class Work>
int tell_of_failures(RankReporter& report, const Work& work) {
  try {
    work();
    report.finished();
    return 0;
  } catch (const JobFailure& error) {
    report.failed(error.kind(), error.what());
  } catch (const CommunicationError& error) {
    report.failed(RankFailure::kCommunication, error.what());
  } catch (const std::bad_alloc&) {
    report.failed(RankFailure::kOutOfMemory, kNoMemory);
  } catch (const std::system_error& error) {
    report.failed(RankFailure::kMachine, error.what());
  } catch (const std::exception& error) {
    report.failed(RankFailure::kInternal, error.what());
  }
  std::_Exit(1);
}

}  // namespace stepcast
