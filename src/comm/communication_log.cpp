// Collects the times of the operations of each step and sums them up.
#include "comm/communication_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

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

namespace {

/// Returns the seconds that at least one of the spans covers.
double covered(std::vector<std::pair<double, double>> spans) {
  std::ranges::sort(spans);
  double seconds = 0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [first, last] : spans) {
    if (last > end) seconds += last - std::max(first, end);
    end = std::max(end, last);
  }
  return seconds;
}

}  // namespace

/// Reads the times of a step. Returns false where one of them is not known yet.
bool CommunicationLog::read(const Step& step) {
  double wait = step.wait_seconds, first = 0, last = 0, table = 0;
  std::vector<LoggedOperation> read;
  std::map<Collective, std::vector<std::pair<double, double>>> spans;
  std::map<Collective, CollectiveSamples> sums;
  for (std::size_t i = 0; i < step.operations.size(); ++i) {
    const auto& [operation, load] = step.operations[i];
    const auto times = operation->times();
    if (!times) return false;
    wait += times->wait_end - times->wait_begin;
    first = i == 0 ? times->posted : std::min(first, times->posted);
    last = i == 0 ? times->done : std::max(last, times->done);
    spans[load.collective].emplace_back(times->posted, times->done);
    CollectiveSamples& sum = sums[load.collective];
    sum.messages += 1;
    sum.bytes += static_cast<double>(load.bytes);
    sum.wait_seconds += times->wait_end - times->wait_begin;
    if (load.of_table) table = std::max(table, times->done - times->posted);
    if (keeps_operations_) read.push_back({times_.wait_seconds.size(), load, *times});
  }
  times_.wait_seconds.push_back(wait);
  std::vector<std::pair<double, double>> all;
  for (const auto& [collective, own] : spans) {
    sums[collective].seconds = covered(own);
    all.insert(all.end(), own.begin(), own.end());
    add(sums[collective], collective);
  }
  const bool goes_on = sums.contains(Collective::reduce_scatter);
  times_.communication_seconds += goes_on ? covered(std::move(all)) : last - first;
  times_.table_seconds += table;
  times_.operations.insert(times_.operations.end(), read.begin(), read.end());
  return true;
}

void CommunicationLog::add(const CollectiveSamples& of_step, Collective collective) {
  auto sum = std::ranges::find(times_.collectives, collective, &CollectiveSamples::collective);
  if (sum == times_.collectives.end())
    sum = times_.collectives.insert(sum, CollectiveSamples{.collective = collective});
  sum->messages += of_step.messages;
  sum->bytes += of_step.bytes;
  sum->wait_seconds += of_step.wait_seconds;
  sum->seconds += of_step.seconds;
}

}  // namespace scalemark
