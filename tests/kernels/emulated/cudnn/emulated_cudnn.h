// SPDX-License-Identifier: Apache-2.0
// What tests do with the stand-in for cuDNN beyond its API. It checks descriptors against what the
// library documents, and executes graphs exactly as they are described.
#pragma once

#include <string>

namespace stepcast::emulated {

// 1 ms and version 9.19.0 unless set, and nothing refused.
void set_cudnn_seconds(double seconds);           // of each execution, on its stream
void set_cudnn_version(std::size_t version);      // 91900
void refuse_cudnn_plans(const std::string& why);  // empty: none is
int cudnn_executions();                           // since the process began

}  // namespace stepcast::emulated
