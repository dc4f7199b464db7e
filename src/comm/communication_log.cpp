// Collects the times of the operations of each step and sums them up.
#include "comm/communication_log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "error.hpp"

namespace scalemark {

void CommunicationLog::add(std::unique_ptr<Pending> operation, const OperationLoad& load) {
  step_.operations.emplace_back(std::move(operation), load);
}

void CommunicationLog::end_step() {
  unread_.push_back(std::exchange(step_, {}));
  read();
}

CommunicationTimes CommunicationLog::take() {
  read();
  if (!unread_.empty())
    throw CommError(
        fmt::format("the times of the last {} steps are asked for before the device has ended them",
                    unread_.size()));
  return std::exchange(times_, {});
}

void CommunicationLog::read() {
  while (!unread_.empty() && read(unread_.front())) unread_.pop_front();
}

/// Reads the times of a step. Returns false where one of them is not known yet.
bool CommunicationLog::read(const Step& step) {
  double wait = step.wait_seconds, first = 0, last = 0, table = 0;
  std::vector<LoggedOperation> read;
  for (std::size_t i = 0; i < step.operations.size(); ++i) {
    const auto& [operation, load] = step.operations[i];
    const auto times = operation->times();
    if (!times) return false;
    wait += times->wait_end - times->wait_begin;
    first = i == 0 ? times->posted : std::min(first, times->posted);
    last = i == 0 ? times->done : std::max(last, times->done);
    if (load.of_table) table = std::max(table, times->done - times->posted);
    if (keeps_operations_) read.push_back({times_.wait_seconds.size(), load, *times});
  }
  times_.wait_seconds.push_back(wait);
  times_.communication_seconds += last - first;
  times_.table_seconds += table;
  times_.operations.insert(times_.operations.end(), read.begin(), read.end());
  return true;
}

}  // namespace scalemark
