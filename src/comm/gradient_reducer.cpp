// Starts each bucket's allreduce as soon as it may start, and waits for all at the end of the step.
#include "comm/gradient_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "error.hpp"

namespace scalemark {

GradientReducer::GradientReducer(Communicator& communicator, std::vector<Buffer> buckets,
                                 std::vector<int> parameters_in, Overlap overlap)
    : communicator_(communicator),
      buckets_(std::move(buckets)),
      parameters_in_(std::move(parameters_in)),
      overlap_(overlap),
      missing_(parameters_in_),
      of_table_(buckets_.size()) {
  if (buckets_.size() != parameters_in_.size())
    throw CommError(fmt::format("{} buckets but {} parameter counts: one of each per bucket",
                                buckets_.size(), parameters_in_.size()));
  pending_.reserve(buckets_.size());
}

void GradientReducer::add(int bucket, Stream stream) {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= buckets_.size())
    throw CommError(
        fmt::format("gradient for bucket {}, but there are {}", bucket, buckets_.size()));
  auto& missing = missing_[static_cast<std::size_t>(bucket)];
  if (--missing < 0)
    throw CommError(fmt::format("bucket {} got more than its {} gradients in one step", bucket,
                                parameters_in_[static_cast<std::size_t>(bucket)]));
  if (overlap_ == Overlap::none) return;
  while (next_ < buckets_.size() && missing_[next_] == 0) start_next(stream);
}

void GradientReducer::start_next(Stream stream) {
  if (buckets_[next_].count == 0)  // it travels some other way
    pending_.push_back(completed_operation());
  else
    pending_.push_back(communicator_.start_allreduce(buckets_[next_], stream));
  ++next_;
}

void GradientReducer::finalize(Stream stream, const std::function<void(std::size_t)>& on_sum) {
  if (communicator_.moves_data()) {
    const auto open =
        std::find_if(missing_.begin(), missing_.end(), [](int missing) { return missing != 0; });
    if (open != missing_.end())
      throw CommError(fmt::format(
          "bucket {} lacks {} of its {} gradients at the end of the step", open - missing_.begin(),
          *open, parameters_in_[static_cast<std::size_t>(open - missing_.begin())]));
  }
  while (next_ < buckets_.size()) start_next(stream);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    pending_[i]->wait();
    if (buckets_[i].count > 0 && communicator_.moves_data())
      log_.add(std::move(pending_[i]),
               {of_table_[i], static_cast<int>(i), communicator_.payload_bytes(buckets_[i])});
    if (on_sum) on_sum(i);
  }
  log_.end_step();
  pending_.clear();
  missing_ = parameters_in_;
  next_ = 0;
}

std::int64_t GradientReducer::bytes_per_step() const {
  std::int64_t bytes = 0;
  for (const auto& bucket : buckets_) bytes += communicator_.payload_bytes(bucket);
  return bytes;
}

std::int64_t GradientReducer::wire_bytes_per_step() const {
  std::int64_t bytes = 0;
  for (const auto& bucket : buckets_)
    bytes += communicator_.wire_bytes(communicator_.payload_bytes(bucket));
  return bytes;
}

std::int64_t GradientReducer::messages_per_step() const {
  if (!communicator_.moves_data()) return 0;
  return std::count_if(buckets_.begin(), buckets_.end(),
                       [](const Buffer& bucket) { return bucket.count > 0; });
}

}  // namespace scalemark
