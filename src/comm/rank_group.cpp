// Implements control collectives: each posts a nonblocking MPI operation and waits until it is
// complete.
#include "comm/rank_group.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "comm/rank_group_impl.hpp"

namespace scalemark {

namespace {

constexpr std::int64_t largest_message = 1 << 30;  // bytes of one broadcast; MPI counts are int

std::int64_t total(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// Holds counts and displacements of MPI's "v" collectives.
struct ByteLayout {
  std::vector<int> counts, displacements;
  explicit ByteLayout(const std::vector<std::int64_t>& sizes, const char* call) {
    if (total(sizes) > std::numeric_limits<int>::max())
      throw CommError(fmt::format("{}: {} bytes over all ranks; at most {} fit", call, total(sizes),
                                  std::numeric_limits<int>::max()));
    int offset = 0;
    for (const auto size : sizes) {
      counts.push_back(static_cast<int>(size));
      displacements.push_back(offset);
      offset += static_cast<int>(size);
    }
  }
};

std::vector<std::string> cut(const std::string& all, const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> parts;
  std::size_t offset = 0;
  for (const auto size : sizes) {
    parts.push_back(all.substr(offset, static_cast<std::size_t>(size)));
    offset += static_cast<std::size_t>(size);
  }
  return parts;
}

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

RankGroup::Impl::Impl(std::shared_ptr<MpiWorld> owner, MPI_Comm comm)
    : world(std::move(owner)), communicator(comm) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_size);
  MPI_Comm_free(&node);
  const int first_of_host = local_rank == 0 ? 1 : 0;
  check_mpi(MPI_Allreduce(&first_of_host, &hosts, 1, MPI_INT, MPI_SUM, comm), "MPI_Allreduce");
}

RankGroup RankGroup::world(Watchdog& watchdog) {
  watchdog.enter("start-up");
  auto mpi = std::make_shared<MpiWorld>(watchdog);
  auto impl = mpi->call("start-up", [&] { return std::make_shared<Impl>(mpi, MPI_COMM_WORLD); });
  return RankGroup(std::move(impl));
}

int RankGroup::rank() const { return impl_->rank; }
int RankGroup::size() const { return impl_->size; }
int RankGroup::local_rank() const { return impl_->local_rank; }
int RankGroup::local_size() const { return impl_->local_size; }
Watchdog& RankGroup::watchdog() const { return impl_->world->watchdog(); }
double RankGroup::communication_cpu_seconds() const { return impl_->world->cpu_seconds(); }
void RankGroup::finalize(RankGroup& world) { world.impl_->world->finalize(); }

std::string RankGroup::library_version() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // allowed at any time, from any thread
  const std::string all(text.data());
  return all.substr(0, all.find('\n'));
}

void RankGroup::barrier() {
  impl_->run("barrier", "MPI_Ibarrier", [comm = impl_->communicator](MPI_Request* request) {
    return MPI_Ibarrier(comm, request);
  });
}

std::string RankGroup::broadcast(std::string value, int root) {
  auto length = static_cast<std::int64_t>(value.size());
  const auto comm = impl_->communicator;
  impl_->run("broadcast", "MPI_Ibcast", [&length, root, comm](MPI_Request* request) {
    return MPI_Ibcast(&length, 1, MPI_INT64_T, root, comm, request);
  });
  value.resize(static_cast<std::size_t>(length));
  for (std::int64_t sent = 0; sent < length; sent += largest_message) {
    const int count = static_cast<int>(std::min(largest_message, length - sent));
    char* part = value.data() + sent;
    impl_->run("broadcast", "MPI_Ibcast", [=](MPI_Request* request) {
      return MPI_Ibcast(part, count, MPI_BYTE, root, comm, request);
    });
  }
  return value;
}

std::vector<std::string> RankGroup::gather(const std::string& value, int root) {
  const auto comm = impl_->communicator;
  const auto own = static_cast<std::int64_t>(value.size());
  std::vector<std::int64_t> sizes(rank() == root ? static_cast<std::size_t>(size()) : 0);
  impl_->run("gather", "MPI_Igather", [&](MPI_Request* request) {
    return MPI_Igather(&own, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, root, comm, request);
  });
  std::string all(static_cast<std::size_t>(total(sizes)), '\0');
  const ByteLayout layout(sizes, "gather");
  impl_->run("gather", "MPI_Igatherv", [&](MPI_Request* request) {
    return MPI_Igatherv(value.data(), static_cast<int>(own), MPI_BYTE, all.data(),
                        layout.counts.data(), layout.displacements.data(), MPI_BYTE, root, comm,
                        request);
  });
  return cut(all, sizes);
}

std::vector<std::string> RankGroup::all_gather(const std::string& value) {
  const auto comm = impl_->communicator;
  const auto own = static_cast<std::int64_t>(value.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size()));
  impl_->run("all-gather", "MPI_Iallgather", [&](MPI_Request* request) {
    return MPI_Iallgather(&own, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, comm, request);
  });
  std::string all(static_cast<std::size_t>(total(sizes)), '\0');
  const ByteLayout layout(sizes, "all-gather");
  impl_->run("all-gather", "MPI_Iallgatherv", [&](MPI_Request* request) {
    return MPI_Iallgatherv(value.data(), static_cast<int>(own), MPI_BYTE, all.data(),
                           layout.counts.data(), layout.displacements.data(), MPI_BYTE, comm,
                           request);
  });
  return cut(all, sizes);
}

std::vector<double> RankGroup::all_sum(std::vector<double> values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(double));
  impl_->run("all-sum", "MPI_Iallreduce", [&](MPI_Request* request) {
    return impl_->world->selector().post(bytes, [&] {
      return MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                            MPI_DOUBLE, MPI_SUM, impl_->communicator, request);
    });
  });
  return values;
}

std::optional<RankGroup> RankGroup::split(int color) const {
  // MPI_Comm_split polls until all ranks have arrived, so they first arrive at a barrier that
  // sleeps.
  RankGroup(*this).barrier();
  auto impl = impl_->world->call("split", [this, color]() -> std::shared_ptr<Impl> {
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(
        MPI_Comm_split(impl_->communicator, color < 0 ? MPI_UNDEFINED : color, impl_->rank, &part),
        "MPI_Comm_split");
    return part == MPI_COMM_NULL ? nullptr : std::make_shared<Impl>(impl_->world, part);
  });
  if (!impl) return std::nullopt;
  return RankGroup(std::move(impl));
}

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
