// Describes which parameters of a network are embedding tables, which one forward pass shows, how
// the gradient of each is communicated, and what a rank has collected of one table in a step:
// gradients as rows (Horovod's and TensorFlow's IndexedSlices).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "models/model.hpp"

namespace scalemark {

/// How the gradient of a table is communicated. "Lookups" are those of table_rows(); "dense" is the
/// contribution of a projection that shares the table.
enum class TableGradient {
  dense,     ///< all of it is summed in the table's slice, which travels in its bucket
  beside,    ///< lookups are collected as rows and gathered; dense goes to the slice as ever
  gathered,  ///< all of it is collected as rows and gathered; the slice does not travel
  converted  ///< all of it is collected as rows, added up in the slice, which travels in its bucket
};

/// An embedding table of a network and how its gradient is communicated.
struct EmbeddingTable {
  int parameter;             ///< index into Model::parameters()
  std::string name;          ///< name of the layer
  std::int64_t rows, width;  ///< V x d
  bool tied;                 ///< used for more than lookups
  TableGradient how = TableGradient::dense;

  bool collects() const { return how != TableGradient::dense; }
  /// Returns whether the slice is part of an allreduced bucket.
  bool reduced() const { return how != TableGradient::gathered; }
  bool gathered() const { return how == TableGradient::gathered || how == TableGradient::beside; }
  /// Returns whether the dense gradient is sent as V rows.
  bool carries_dense() const {
    return tied && (how == TableGradient::gathered || how == TableGradient::converted);
  }
};

/// Returns the tables with the strategy of `--embedding_gradients` and `--tied_gradient`. With
/// sparse_as_dense, a dense gradient is collected as rows too, as in the published accumulation
/// (docs/measurements.md).
std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config);

/// Finds out from one forward pass how a network uses its parameters, before their gradients are
/// laid out. Records in which order layers use the leaves, which of these are looked up in, and
/// which of these have other uses too. It takes no gradient.
class UseProbe : public ParameterGate {
 public:
  void before_use(at::TensorList parameters) override;
  void begin_block() override { block_ = blocks_++; }
  void end_block(const at::Tensor&) override { block_ = -1; }
  at::Tensor compute_weight(const at::Tensor& leaf) override;
  bool takes_rows(const at::Tensor& leaf) override;

  /// Returns the embedding tables in the order of the parameters.
  std::vector<EmbeddingTable> tables(const Model& model) const;
  /// Returns for each parameter its place in the order of first uses, from 0, or -1 where no layer
  /// announced it, so that it may be read at any time.
  std::vector<int> first_uses(const Model& model) const;
  /// Returns for each parameter the block of the network (run_block()) that uses it, or -1: none,
  /// or others too.
  std::vector<int> blocks(const Model& model) const;
  /// Returns for each parameter whether layers read it through compute_weight().
  std::vector<bool> computed_with(const Model& model) const;

 private:
  struct Uses {
    int first = -1, all = 0, lookups = 0, block = -1;
  };
  Uses uses_of(const at::Tensor& leaf) const;
  std::map<const c10::TensorImpl*, Uses> uses_;
  int announced_ = 0, blocks_ = 0, block_ = -1;
};

/// Stores rows of one table contiguously. Its memory grows during the first steps and then stays.
class RowBuffer {
 public:
  RowBuffer() = default;
  /// `dense` is the number of the table's own V rows at the front, which dense() returns; else 0.
  RowBuffer(std::int64_t width, std::int64_t dense, const at::TensorOptions& fp32);

  /// Begins a step: only the V rows of a dense gradient are left, and their values are undefined.
  void clear();
  /// Appends indices [n] and rows [n, width] of any floating type, which are cast.
  void append(const at::Tensor& indices, const at::Tensor& rows);

  std::int64_t count() const { return count_; }
  at::Tensor dense() const { return rows_.narrow(0, 0, dense_); }       ///< fp32 [V, width]
  at::Tensor indices() const { return indices_.narrow(0, 0, count_); }  ///< int64 [count]
  at::Tensor rows() const { return rows_.narrow(0, 0, count_); }        ///< fp32 [count, width]

 private:
  void reserve(std::int64_t count);

  std::int64_t dense_ = 0, count_ = 0;
  at::Tensor indices_, rows_;
};

}  // namespace scalemark
