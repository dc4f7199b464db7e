// Exchanges the collected rows of embedding tables between ranks: it gathers every rank's rows at
// every rank, and adds them to the dense gradients there. The GradientReducer sums what is dense.
#pragma once

#include <memory>
#include <vector>

#include "comm/gradient_reducer.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// Gathers the rows of all tables whose gradients are collected as rows.
class EmbeddingExchange {
 public:
  /// `group` holds the ranks of `communicator`, which agree on how many rows each of them sends.
  /// Where no data is moved, or there is no other rank, only the own rows are added. `reducer`
  /// reduces the dense parts and keeps the log of the step.
  EmbeddingExchange(FlatParameters& parameters, RankGroup& group, Communicator& communicator,
                    GradientReducer& reducer);

  /// Starts gathering. All ranks call it after the last backward pass of a step. It does nothing
  /// where no table is gathered.
  void start(Stream stream);
  /// Waits for the rows of a bucket's tables and adds them in rank order, so that all ranks get the
  /// same bits. Call it once the bucket's dense part is summed, before anything reads its
  /// gradients.
  void finish(std::size_t bucket);
  /// Ends the step and records its rows.
  void end_step();

  /// Returns the sums since the last call, except for exchange_seconds.
  EmbeddingSamples take();

 private:
  /// A table that is gathered, and what came from all ranks.
  struct Gather {
    TableRows* rows;
    at::Tensor all_indices, all_rows;  ///< rows of the current step; views of the memory below
    at::Tensor index_memory, row_memory;
    std::vector<std::unique_ptr<Pending>> pending;
  };

  void post(Gather& gather, const std::vector<std::size_t>& counts, Stream stream);
  std::unique_ptr<Pending> post(const at::Tensor& mine, const at::Tensor& all, DataType type,
                                std::vector<std::size_t> counts, Stream stream);

  const OperatorSet& operators_;
  std::vector<TableRows>& tables_;
  RankGroup& group_;
  Communicator& communicator_;
  CommunicationLog& log_;
  bool alone_;  ///< nothing is sent
  std::vector<Gather> gathers_;
  std::vector<double> converted_before_;  ///< by table
  EmbeddingSamples sums_;
};

}  // namespace scalemark
