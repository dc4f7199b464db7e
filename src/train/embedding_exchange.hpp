// Carries the collected rows of embedding tables between ranks: gathers every rank's rows at every
// rank, and adds them to the dense gradients there. Beside the GradientReducer, which sums what is
// dense.
#pragma once

#include <memory>
#include <vector>

#include "comm/gradient_reducer.hpp"
#include "measure/samples.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

class EmbeddingExchange {
 public:
  /// `group`: the ranks of `communicator`; agrees on how many rows each of them sends. Where
  /// nothing moves, or there is no other rank, own rows are all there are.
  /// `reducer`: of the dense parts, which keeps the log of the step.
  EmbeddingExchange(FlatParameters& parameters, RankGroup& group, Communicator& communicator,
                    GradientReducer& reducer);

  /// After the last backward pass of a step, by all ranks: starts gathering. Does nothing where no
  /// table gathers.
  void start(Stream stream);
  /// Once the bucket's dense part is summed, before anything reads its gradients: waits for the
  /// rows of its tables and adds them, in rank order, so that all ranks get the same bits.
  void finish(std::size_t bucket);
  /// The step is over: takes down its rows.
  void end_step();

  /// The sums since the last call, but for exchange_seconds.
  EmbeddingSamples take();

 private:
  /// A table that gathers, and what came from all ranks.
  struct Gather {
    TableRows* rows;
    at::Tensor all_indices, all_rows;  ///< of the step; views of the memory below
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
