// SPDX-License-Identifier: Apache-2.0
// The words that a scenario file uses for the enumerations of scenario.h and for the rows of
// tables, in the order of enumerators and rows, for reading and for writing.
#pragma once

#include <string>
#include <vector>

#include "layout/layout.h"
#include "layout/recomputed_modules.h"
#include "layout/training.h"
#include "model/adapter_targets.h"

namespace stepcast {

std::vector<std::string> framework_names();
std::vector<std::string> attention_names();
std::vector<std::string> grad_clip_names();
std::vector<std::string> training_mode_names();
std::vector<std::string> optimizer_names();
std::vector<std::string> muon_mode_names();
std::vector<std::string> fp4_products_names();
std::vector<std::string> offload_device_names();
std::vector<std::string> outer_precision_names();
std::vector<std::string> cuda_graph_names();  // of what a file states as a word
std::vector<std::string> recompute_mode_names();
std::vector<std::string> recomputed_module_names();
std::vector<std::string> adapter_target_names();
std::vector<std::string> context_method_names();
std::vector<std::string> schedule_names();  // without "file:PATH"

const char* name_of(AttentionKernel attention);
const char* name_of(GradClip clip);
const char* name_of(TrainingMode mode);
const char* name_of(Optimizer optimizer);
const char* name_of(MuonMode mode);
const char* name_of(Fp4Products products);
const char* name_of(OffloadDevice device);
const char* name_of(OuterPrecision precision);
const char* name_of(CudaGraphs graphs);
const char* name_of(ContextMethod method);
const char* name_of(RecomputedModule module);
const char* name_of(AdapterTarget target);

}  // namespace stepcast
