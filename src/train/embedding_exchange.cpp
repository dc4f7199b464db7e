// Gathers rows of embedding tables over ranks and adds them to the gradients.
#include "train/embedding_exchange.hpp"

#include <algorithm>
#include <numeric>

#include "measure/bus_bandwidth.hpp"
#include "measure/clock.hpp"

namespace scalemark {
namespace {

/// Returns the first `count` rows of `memory`, which grows where it is too short.
at::Tensor first_rows(at::Tensor& memory, std::int64_t count, const at::Tensor& like) {
  if (!memory.defined() || memory.size(0) < count) {
    auto shape = like.sizes().vec();
    shape[0] = count;
    memory = at::Tensor();  // frees the old memory before the new is allocated
    memory = at::empty(shape, like.options());
  }
  return memory.narrow(0, 0, count);
}

}  // namespace

EmbeddingExchange::EmbeddingExchange(FlatParameters& parameters, RankGroup& group,
                                     Communicator& communicator, GradientReducer& reducer)
    : operators_(parameters.operators()),
      tables_(parameters.tables()),
      group_(group),
      communicator_(communicator),
      log_(reducer.log()),
      alone_(!communicator.moves_data() || communicator.size() == 1) {
  for (TableRows& rows : tables_) {
    if (rows.table.gathered()) gathers_.push_back({&rows, {}, {}, {}, {}, {}});
    converted_before_.push_back(rows.converting_seconds);
  }
  sums_.rows.resize(tables_.size());
  std::vector<bool> of_table(parameters.buckets().size());
  for (const TableRows& rows : tables_)
    if (rows.table.reduced()) of_table[static_cast<std::size_t>(rows.bucket)] = true;
  reducer.set_of_table(std::move(of_table));
}

/// Starts gathering. The number of rows that a rank sends depends on its batch alone, so the ranks
/// first exchange these numbers. On a GPU the host waits for that while the stream still computes,
/// so the wait does not delay the step.
void EmbeddingExchange::start(Stream stream) {
  if (gathers_.empty()) return;
  const auto ranks = static_cast<std::size_t>(alone_ ? 1 : group_.size());
  const auto own = static_cast<std::size_t>(alone_ ? 0 : group_.rank());
  std::vector<double> counts(gathers_.size() * ranks);
  for (std::size_t i = 0; i < gathers_.size(); ++i)
    counts[i * ranks + own] = static_cast<double>(gathers_[i].rows->rows.count());
  const double before = steady_seconds();
  if (!alone_) counts = group_.all_sum(std::move(counts));
  if (tables_.front().gradient.is_cpu()) log_.add_wait(steady_seconds() - before);
  for (std::size_t i = 0; i < gathers_.size(); ++i) {
    const auto first = counts.begin() + static_cast<std::ptrdiff_t>(i * ranks);
    post(gathers_[i], {first, first + static_cast<std::ptrdiff_t>(ranks)}, stream);
  }
}

void EmbeddingExchange::post(Gather& gather, const std::vector<std::size_t>& counts,
                             Stream stream) {
  gather.all_indices = gather.all_rows = at::Tensor();  // views would keep memory that was replaced
  const RowBuffer& mine = gather.rows->rows;
  if (alone_) {
    gather.all_indices = mine.indices();
    gather.all_rows = mine.rows();
    return;
  }
  const auto total =
      static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  gather.all_indices = first_rows(gather.index_memory, total, mine.indices());
  gather.all_rows = first_rows(gather.row_memory, total, mine.rows());
  gather.pending.push_back(post(mine.indices(), gather.all_indices, DataType::i64, counts, stream));
  gather.pending.push_back(post(mine.rows(), gather.all_rows, DataType::f32, counts, stream));
}

std::unique_ptr<Pending> EmbeddingExchange::post(const at::Tensor& mine, const at::Tensor& all,
                                                 DataType type, std::vector<std::size_t> counts,
                                                 Stream stream) {
  const auto width = static_cast<std::size_t>(mine.dim() == 2 ? mine.size(1) : 1);
  for (std::size_t& count : counts) count *= width;
  sums_.messages += 1;
  sums_.payload_bytes += static_cast<double>(mine.nbytes());
  sums_.wire_bytes += static_cast<double>(
      ring_allgather_bytes(static_cast<std::int64_t>(all.nbytes()), communicator_.size()));
  const auto buffer = [type](const at::Tensor& tensor) {
    return Buffer{tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), type};
  };
  return asynchronous(communicator_).start_allgather(buffer(mine), buffer(all), counts, stream);
}

void EmbeddingExchange::finish(std::size_t bucket) {
  for (Gather& gather : gathers_) {
    if (static_cast<std::size_t>(gather.rows->bucket) != bucket) continue;
    for (auto& pending : gather.pending) {
      pending->wait();
      const bool indices = &pending == &gather.pending.front();
      const at::Tensor& all = indices ? gather.all_indices : gather.all_rows;
      log_.add(std::move(pending),
               {true, static_cast<int>(bucket), static_cast<std::int64_t>(all.nbytes()),
                Collective::allgather});
    }
    gather.pending.clear();
    const double start = steady_seconds();
    if (!gather.rows->table.reduced()) gather.rows->gradient.zero_();
    operators_.add_rows(gather.rows->gradient, gather.all_indices, gather.all_rows);
    sums_.densify_seconds += steady_seconds() - start;
    sums_.gathered_bytes +=
        static_cast<double>(gather.all_indices.nbytes() + gather.all_rows.nbytes());
  }
}

void EmbeddingExchange::end_step() {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const TableRows& rows = tables_[i];
    sums_.rows[i] += static_cast<double>(rows.rows.count());
    sums_.densify_seconds += rows.converting_seconds - converted_before_[i];
    converted_before_[i] = rows.converting_seconds;
  }
}

EmbeddingSamples EmbeddingExchange::take() {
  EmbeddingSamples sums = std::move(sums_);
  sums_ = {};
  sums_.rows.resize(tables_.size());
  return sums;
}

}  // namespace scalemark
