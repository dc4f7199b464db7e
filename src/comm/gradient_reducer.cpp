// Starts the allreduce of each bucket as early as allowed, and waits for all at the end of the step
// or for each when it is needed.
#include "comm/gradient_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "error.hpp"

namespace scalemark {

GradientReducer::GradientReducer(Communicator& communicator, std::vector<Buffer> buckets,
                                 std::vector<int> parameters_in, Overlap overlap,
                                 std::vector<int> urgency)
    : communicator_(communicator),
      asynchronous_(dynamic_cast<AsynchronousCommunicator*>(&communicator)),
      buckets_(std::move(buckets)),
      parameters_in_(std::move(parameters_in)),
      overlap_(overlap),
      urgency_(std::move(urgency)),
      missing_(parameters_in_),
      pending_(buckets_.size()),
      of_table_(buckets_.size()) {
  if (buckets_.size() != parameters_in_.size())
    throw CommError(fmt::format("{} buckets but {} parameter counts: one of each per bucket",
                                buckets_.size(), parameters_in_.size()));
  if (overlap_ == Overlap::step && urgency_.size() != buckets_.size())
    throw CommError(fmt::format("{} buckets but {} urgencies", buckets_.size(), urgency_.size()));
}

void GradientReducer::begin_step(Stream stream) {
  if (asynchronous_) asynchronous_->begin_step(stream);
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
  const Buffer& bucket = buckets_[next_];
  auto& pending = pending_[next_];
  if (pending)
    throw CommError(fmt::format("bucket {} is still on its way from the step before", next_));
  if (bucket.count == 0)  // its data is sent in another way
    pending = completed_operation();
  else if (asynchronous_ && overlap_ == Overlap::step)
    pending = asynchronous_->start_urgent_allreduce(bucket, urgency_[next_], stream);
  else if (asynchronous_ && next_ + 1 == buckets_.size())  // this is the end of the backward pass
    pending = asynchronous_->start_last_allreduce(bucket, stream);
  else
    pending = communicator_.start_allreduce(bucket, stream);
  ++next_;
}

void GradientReducer::check_full() const {
  const auto open =
      std::find_if(missing_.begin(), missing_.end(), [](int missing) { return missing != 0; });
  if (open != missing_.end())
    throw CommError(fmt::format("bucket {} lacks {} of its {} gradients at the end of the step",
                                open - missing_.begin(), *open,
                                parameters_in_[static_cast<std::size_t>(open - missing_.begin())]));
}

void GradientReducer::finalize(Stream stream, const std::function<void(std::size_t)>& on_sum) {
  if (communicator_.moves_data()) check_full();
  while (next_ < buckets_.size()) start_next(stream);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    wait(i);
    if (on_sum) on_sum(i);
  }
  end_step();
}

void GradientReducer::start_rest(Stream stream) {
  check_full();
  while (next_ < buckets_.size()) start_next(stream);
}

void GradientReducer::wait(std::size_t bucket) {
  auto pending = std::exchange(pending_[bucket], nullptr);
  if (!pending) return;
  pending->wait();
  if (buckets_[bucket].count > 0 && communicator_.moves_data())
    log_.add(std::move(pending), {of_table_[bucket], static_cast<int>(bucket),
                                  communicator_.payload_bytes(buckets_[bucket])});
}

bool GradientReducer::is_complete(std::size_t bucket) const {
  return !pending_[bucket] || pending_[bucket]->is_complete();
}

void GradientReducer::end_step() {
  log_.end_step();
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
