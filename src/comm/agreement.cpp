// Implements the agreements of ranks: on one outcome of a phase (agree) and on stopping together
// (AgreedStop).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "comm/rank_group_impl.hpp"

namespace scalemark {
namespace {

constexpr std::size_t longest_message = 4096;

/// Returns "ranks 0, 2: words", with each distinct message once, or the words alone where all ranks
/// say the same.
std::string words_of_ranks(const std::map<std::string, std::vector<int>>& ranks_by_words,
                           std::size_t world_size) {
  std::string text;
  for (const auto& [words, ranks] : ranks_by_words) {
    if (ranks.size() == world_size) return words;
    if (!text.empty()) text += "; ";
    text +=
        fmt::format("rank{} {}: {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "), words);
  }
  return text;
}

}  // namespace

void RankGroup::agree(ExitCode code, const std::string& message) {
  if (all_sum({code == ExitCode::ok ? 0.0 : 1.0})[0] == 0) return;
  const auto outcomes =
      all_gather(fmt::format("{} {}", static_cast<int>(code), message.substr(0, longest_message)));
  ExitCode agreed = ExitCode::ok;
  std::map<std::string, std::vector<int>> ranks_by_words;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const auto space = outcomes[rank].find(' ');
    const auto its_code = static_cast<ExitCode>(std::stoi(outcomes[rank].substr(0, space)));
    if (its_code == ExitCode::ok) continue;
    agreed = most_severe(agreed, its_code);
    ranks_by_words[outcomes[rank].substr(space + 1)].push_back(static_cast<int>(rank));
  }
  throw AgreedError(agreed, words_of_ranks(ranks_by_words, outcomes.size()));
}

struct AgreedStop::Impl {
  std::shared_ptr<RankGroup::Impl> group;
  std::shared_ptr<Operation> posted;  ///< null before the first exchange
  std::shared_ptr<std::vector<double>>
      values;  ///< buffer of `posted`, which the operation keeps alive

  std::vector<double> read() {
    if (!posted) return {};
    group->world->wait(*std::exchange(posted, nullptr), "agreed stop");
    return std::move(*values);
  }
};

AgreedStop::AgreedStop(RankGroup& group) : impl_(std::make_unique<Impl>()) {
  impl_->group = group.impl();
}

// A reduction that nobody has read continues by itself, since the operation owns its buffer.
AgreedStop::~AgreedStop() = default;

std::vector<double> AgreedStop::exchange(std::span<const double> words) {
  auto before = impl_->read();
  auto values = std::make_shared<std::vector<double>>(words.begin(), words.end());
  impl_->values = values;
  const auto post = [values, comm = impl_->group->communicator, world = impl_->group->world.get()] {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto count = static_cast<int>(values->size());
    check_mpi(world->selector().post(static_cast<std::int64_t>(values->size() * sizeof(double)),
                                     [&] {
                                       return MPI_Iallreduce(MPI_IN_PLACE, values->data(), count,
                                                             MPI_DOUBLE, MPI_SUM, comm, &request);
                                     }),
              "MPI_Iallreduce");
    return std::vector{request};
  };
  impl_->posted = impl_->group->world->start(post, MpiWorld::Poster::caller_alone);
  return before;
}

std::vector<double> AgreedStop::finish() { return impl_->read(); }

}  // namespace scalemark
