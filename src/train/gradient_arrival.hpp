// Moves gradients from the backward pass into their slices, and detects when they are complete.
//
// A leaf's grad stays undefined, so that autograd passes on the tensor that the backward pass
// computed, without adding it to anything; a hook then moves it into the flat bucket (one pass,
// casting). Where a weight is used more than once, autograd sums before the hook runs. Layers that
// put gradients themselves (ParameterGate::put_gradient) add up in the bucket instead. The gradient
// of a table may be collected as rows: then rows go to its RowBuffer, and so does a dense
// contribution that is to be sent as rows.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "models/model.hpp"
#include "train/embedding_tables.hpp"

namespace scalemark {

/// Calls `action` with the complete gradient of `leaf` once in each backward pass, then drops the
/// gradient.
void on_gradient(const at::Tensor& leaf, std::function<void(const at::Tensor&)> action);
/// Removes the action, so that the gradient stays with the leaf again.
void forget_gradient(const at::Tensor& leaf);

/// An embedding table and what this rank has collected of its gradient in the current step.
struct TableRows {
  EmbeddingTable table;
  int bucket;
  at::Tensor gradient;            ///< fp32 [V, d], a view of the bucket
  RowBuffer rows;                 ///< where the table collects
  double converting_seconds = 0;  ///< adding rows to the slice, all steps so far (converted)
};

/// Receives the gradients of all slices. Slices are numbered in the order in which they are added.
class GradientArrival : public std::enable_shared_from_this<GradientArrival> {
 public:
  explicit GradientArrival(const OperatorSet& operators) : operators_(operators) {}
  /// Adds a slice. `gradient` is the slice's part of its bucket, in the shape of the parameter.
  void add_slice(int bucket, const at::Tensor& gradient);
  /// Says that a slice belongs to this table.
  void add_table(int slice, const EmbeddingTable& table);
  std::vector<TableRows>& tables() { return tables_; }

  /// Sets the function of FlatParameters::set_on_ready().
  void set_on_ready(std::function<void(int bucket)> on_ready) { on_ready_ = std::move(on_ready); }
  void begin_pass(bool first, bool last);
  /// Sets a function that is called with the bucket before a gradient is written to it.
  void set_on_write(std::function<void(int bucket)> on_write) { on_write_ = std::move(on_write); }

  /// Announces, in the forward pass, one more use of the parameter; the second function announces
  /// one that puts its gradient itself.
  void expect(int slice) { ++uses_[static_cast<std::size_t>(slice)].given; }
  void expect_put(int slice) { ++uses_[static_cast<std::size_t>(slice)].direct; }
  /// Returns whether rows are collected for this slice.
  bool collects(int slice) { return collected(slice) != nullptr; }

  /// Adds, in the backward pass, a contribution to the slice.
  void put(int slice, const ParameterGate::GradientWriter& write);
  void put_rows(int slice, const at::Tensor& indices, const at::Tensor& rows);
  /// Moves what autograd computes for `leaf` into the slice. Hooks live as long as the leaf, which
  /// may outlive this object.
  void take_from(const at::Tensor& leaf, int slice);

 private:
  /// Counts the contributions to one parameter's gradient in one pass.
  struct Uses {
    int given = 0;         ///< compute weights handed out in the forward pass
    int direct = 0;        ///< number of them that put their gradient themselves
    int arrived = 0;       ///< contributions so far
    bool written = false;  ///< written by a contribution that was not collected as rows

    /// Returns the number of expected contributions. Uses that autograd sees arrive together, as
    /// their sum.
    int expected() const { return direct + (given > direct || given == 0 ? 1 : 0); }
  };
  struct Target {
    int bucket;
    at::Tensor gradient;  ///< a view of the bucket
    int table = -1;       ///< index into tables_; -1: none
  };

  TableRows* collected(int slice);
  void arrived(int slice);

  const OperatorSet& operators_;
  std::vector<Target> targets_;  ///< indexed by slice
  std::vector<Uses> uses_;       ///< indexed by slice
  std::vector<TableRows> tables_;
  bool first_pass_ = true, last_pass_ = true;
  std::function<void(int)> on_ready_ = [](int) {};
  std::function<void(int)> on_write_;  ///< empty: nobody
};

/// Runs one backward pass of two samples and returns the parameter indices in the order in which
/// their gradients arrive. Throws RunError naming a parameter that gets none.
std::vector<int> gradient_ready_order(Model& model, at::Device device);

}  // namespace scalemark
