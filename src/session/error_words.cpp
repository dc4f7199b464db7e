// Adds to the message of an error what helps where memory ran out.
#include "session/error_words.hpp"

#include <fmt/format.h>

#include "error.hpp"
#include "platform/platform.hpp"
#include "train/batch_search.hpp"

namespace scalemark {
namespace {

/// Says how much memory the rank has held at most.
std::string held_words(const Session& session) {
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  if (const auto peak = session.device ? session.device->peak_memory_bytes() : std::nullopt)
    return fmt::format("this rank's tensors held {:.0f} MiB of {}'s memory at most",
                       mebibytes(*peak), session.device->name());
  return fmt::format("this rank held {:.0f} MiB at most", mebibytes(peak_rss_bytes()));
}

std::string batch_words(const Session& session) {
  if (session.config().largest_batch) return "--batch_size max";
  const BatchPlan batch = plan_batch(session.config(), session.world.size());
  return fmt::format("{} samples a rank in micro-batches of {}", batch.batch_size_per_rank,
                     batch.micro_batch_size);
}

}  // namespace

std::string measuring_words(const std::exception& error, const Session& session) {
  if (!is_out_of_memory(error)) return words_of(error);
  return fmt::format(
      "out of memory with {}; {}: {}. Remedy: a smaller --batch_size or --micro_batch_size, fewer "
      "ranks on this host, or --batch_size max, which finds what fits",
      batch_words(session), held_words(session), words_of(error));
}

}  // namespace scalemark
