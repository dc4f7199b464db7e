// Finds out from one forward pass how a network uses its parameters, before their gradients are
// laid out.
#pragma once

#include <map>
#include <vector>

#include "models/model.hpp"
#include "train/embedding_tables.hpp"

namespace scalemark {

/// Records in which order layers use the leaves, which of these are looked up in, and which of
/// these have other uses too. It takes no gradient.
class UseProbe : public ParameterGate {
 public:
  void before_use(at::TensorList parameters) override;
  at::Tensor compute_weight(const at::Tensor& leaf) override;
  bool takes_rows(const at::Tensor& leaf) override;

  /// Returns the embedding tables in the order of the parameters.
  std::vector<EmbeddingTable> tables(const Model& model) const;
  /// Returns for each parameter its place in the order of first uses, from 0, or -1 where no layer
  /// announced it, so that it may be read at any time.
  std::vector<int> first_uses(const Model& model) const;

 private:
  struct Uses {
    int first = -1, all = 0, lookups = 0;
  };
  std::map<const c10::TensorImpl*, Uses> uses_;
  int announced_ = 0;
};

}  // namespace scalemark
