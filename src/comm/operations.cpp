// Starts and tests nonblocking MPI operations, and determines the pauses between tests.
#include "comm/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "error.hpp"

namespace scalemark {

void check_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  throw CommError(fmt::format("{} failed: {}", call, text.data()));
}

namespace {

void note_error(Operation& operation, int result) {
  if (!operation.error.empty()) return;
  try {
    check_mpi(result, "a nonblocking MPI operation");
  } catch (const CommError& error) {
    operation.error = error.what();
  }
}

}  // namespace

void Outstanding::post(std::shared_ptr<Operation> operation) {
  if (!start_stages(operation)) finished_at_post_.push_back(std::move(operation));
}

/// Starts the next stage, and those after it as long as they have no requests. Returns false where
/// none is left.
bool Outstanding::start_stages(const std::shared_ptr<Operation>& operation) {
  while (operation->error.empty() && operation->next_stage < operation->stages.size()) {
    std::vector<MPI_Request> requests;
    try {
      requests = operation->stages[operation->next_stage++]();
    } catch (const std::exception& error) {
      operation->error = error.what();
    }
    std::erase(requests, MPI_REQUEST_NULL);
    operation->open_requests = requests.size();
    for (MPI_Request request : requests) {
      requests_.push_back(request);
      owners_.push_back(operation);
    }
    if (!requests.empty()) return true;
  }
  operation->stages.clear();  // frees what they hold while holding the lock
  return false;
}

std::vector<std::shared_ptr<Operation>> Outstanding::test() {
  std::vector<std::shared_ptr<Operation>> finished = std::exchange(finished_at_post_, {});
  if (requests_.empty()) return finished;
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int completed = 0;
  const int result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed,
                                  indices_.data(), statuses_.data());
  if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS) return fail_all(result);
  if (completed == MPI_UNDEFINED) return finished;
  std::vector<std::shared_ptr<Operation>> ended;  // a stage
  for (int i = 0; i < completed; ++i) {
    const auto& owner = owners_[static_cast<std::size_t>(indices_[i])];
    // A status carries an error only under MPI_ERR_IN_STATUS.
    if (result == MPI_ERR_IN_STATUS) note_error(*owner, statuses_[i].MPI_ERROR);
    if (--owner->open_requests == 0) ended.push_back(owner);
  }
  if (completed > 0) drop_null_requests();
  for (const auto& operation : ended)
    if (!start_stages(operation)) finished.push_back(operation);
  return finished;
}

std::vector<std::shared_ptr<Operation>> Outstanding::fail_all(int result) {
  std::vector<std::shared_ptr<Operation>> failed;
  for (const auto& owner : std::exchange(owners_, {})) {
    note_error(*owner, result);
    if (std::exchange(owner->open_requests, 0) > 0) failed.push_back(owner);
  }
  requests_.clear();
  return failed;
}

void Outstanding::drop_null_requests() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    owners_[kept++] = std::move(owners_[i]);
  }
  requests_.resize(kept);
  owners_.resize(kept);
}

std::chrono::microseconds PollBackoff::pause(const Situation& now) {
  using std::chrono::microseconds;
  constexpr microseconds shortest{50}, longest_after_work{400}, longest{1000};
  constexpr int rounds = 12;
  constexpr microseconds shortest_waited{10}, longest_waited{200}, spin{100};
  constexpr int share_of_wait = 20;  // what comes is seen at most 5 % of its time late
  constexpr microseconds between_liveness_probes{100'000}, busy_round{20};
  const auto time = Clock::now();
  // A long round has moved data. For rounds that followed each other, the time between them is
  // known.
  const bool worked =
      now.worked || now.round > busy_round || (spins_ && time - last_call_ > busy_round);
  last_call_ = time;
  spins_ = false;
  if (worked) {
    last_work_ = time;
    pause_ = std::clamp(std::chrono::duration_cast<microseconds>(rounds * now.round), shortest,
                        longest_after_work);
  }
  if (now.idle && !worked) return between_liveness_probes;
  if (now.waited && time - last_work_ < spin) {
    spins_ = true;
    return microseconds{0};
  }
  if (now.waited) {
    const auto wait = std::chrono::duration_cast<microseconds>(time - last_work_);
    return std::clamp(wait / share_of_wait, shortest_waited, longest_waited);
  }
  const auto pause = pause_;
  pause_ = std::min(pause_ * 3 / 2, longest);
  return pause;
}

}  // namespace scalemark
