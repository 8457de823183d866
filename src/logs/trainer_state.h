// SPDX-License-Identifier: Apache-2.0
// trainer_state.json and train_results.json of Hugging Face's Trainer, which are no lines.
#pragma once

#include <string>

#include "logs/training_log.h"

namespace stepcast {

// Whether the text is one of them; then `log` has its steps.
bool read_trainer_state(const std::string& text, TrainingLog& log);

}  // namespace stepcast
