// SPDX-License-Identifier: Apache-2.0
// Tests use this of the stand-in for cuDNN beyond its API. It checks descriptors against what the
// library documents, and executes graphs exactly as they are described.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast::emulated {

// 1 ms, version 9.19.0 and 256 bytes unless set, and nothing refused or failing.
void set_cudnn_seconds(double seconds);           // of each execution, on its stream
void set_cudnn_version(std::size_t version);      // 91900
void set_cudnn_workspace(std::int64_t bytes);     // of each plan
void refuse_cudnn_plans(const std::string& why);  // empty: none is
void fail_cudnn_executions(bool fail);            // with CUDNN_STATUS_EXECUTION_FAILED
void fail_cudnn_plans_of_properties(bool fail);   // likewise, those without a handle alone
int cudnn_executions();                           // since the process began

}  // namespace stepcast::emulated
