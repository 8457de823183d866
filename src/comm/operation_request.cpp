// SPDX-License-Identifier: Apache-2.0
#include "comm/operation_request.h"

#include <utility>

#include "comm/collective_operation.h"
#include "comm/idle.h"
#include "comm/progress_driver.h"
#include "comm/rank_group.h"

namespace stepcast {

OperationRequest::OperationRequest(std::shared_ptr<CollectiveOperation> operation)
    : operation_(std::move(operation)) {}

OperationRequest::~OperationRequest() {
  operation_->abandon();
  operation_->group().progress().remove_ended();
}

bool OperationRequest::test() {
  ProgressDriver& progress = operation_->group().progress();
  operation_->drive();
  if (!operation_->ended()) {
    progress.drive_others(*operation_);
    watch_the_clock();
  }
  if (!operation_->ended()) return false;
  operation_->check();
  return true;
}

std::int64_t OperationRequest::moves() const { return operation_->moves(); }

void OperationRequest::watch_the_clock() {
  const std::chrono::milliseconds limit = operation_->group().progress().time_limit();
  const auto now = std::chrono::steady_clock::now();
  // Time in which nobody looked does not count, because messages that arrived meanwhile are only
  // found now.
  const bool looked_away = now - looked_ > limit / 4;
  if (operation_->moves() != moves_ || looked_away) still_since_ = now;
  moves_ = operation_->moves();
  looked_ = now;
  if (now - still_since_ > limit) operation_->time_out(limit);
}

void OperationRequest::wait() {
  Idle idle;
  std::int64_t moves = operation_->moves();
  while (!test()) {
    if (operation_->moves() != moves) idle.restart();
    moves = operation_->moves();
    idle.pause();
  }
}

}  // namespace stepcast
