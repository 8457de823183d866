// SPDX-License-Identifier: Apache-2.0
#include "comm/collective_operation.h"

#include <fmt/format.h>

#include <utility>

#include "comm/communicator.h"
#include "comm/rank_group.h"

namespace stepcast {

CollectiveOperation::CollectiveOperation(std::shared_ptr<RankGroup> group, const char* name,
                                         std::int64_t bytes)
    : group_(std::move(group)), name_(name), bytes_(bytes) {}

CollectiveOperation::~CollectiveOperation() = default;

void CollectiveOperation::take_lane(std::int64_t lane,
                                    std::shared_ptr<CollectiveOperation> before) {
  lane_ = lane;
  before_ = std::move(before);
}

bool CollectiveOperation::may_begin() {
  if (!before_) return true;
  if (!before_->ended()) return false;
  before_->check();
  before_.reset();
  return true;
}

void CollectiveOperation::drive() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || ended()) return;
  try {
    if (may_begin() && advance()) state_.store(State::kDone, std::memory_order_release);
  } catch (const CommunicationError& error) {
    end_as_failed(std::make_exception_ptr(CommunicationError(described() + ": " + error.what())));
  } catch (...) {
    end_as_failed(std::current_exception());
  }
}

void CollectiveOperation::end_as_failed(std::exception_ptr why) noexcept {
  withdraw();
  before_.reset();
  group_->break_off(why);
  failure_ = std::move(why);
  state_.store(State::kFailed, std::memory_order_release);
}

std::string CollectiveOperation::described() const {
  return fmt::format("{} of {} bytes in group {} (rank {} of {})", name_, bytes_, group_->name(),
                     group_->rank(), group_->size());
}

void CollectiveOperation::time_out(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  if (ended()) return;
  const double seconds = std::chrono::duration<double>(limit).count();
  const std::string cause =
      before_ ? fmt::format("an earlier one, {}, has not ended", before_->described())
              : fmt::format("it waits for rank {}, which is process {}", awaited(),
                            group_->process(awaited()));
  end_as_failed(std::make_exception_ptr(CommunicationError(
      fmt::format("{}: no progress for {:.1f} s; {}", described(), seconds, cause))));
}

void CollectiveOperation::abandon() {
  const std::lock_guard lock(mutex_);
  if (ended()) return;
  end_as_failed(std::make_exception_ptr(
      CommunicationError(described() + ": its request was destroyed before it had ended")));
}

void CollectiveOperation::check() const {
  if (state_.load(std::memory_order_acquire) == State::kFailed) std::rethrow_exception(failure_);
}

}  // namespace stepcast
