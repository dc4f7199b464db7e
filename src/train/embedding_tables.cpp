// Finds embedding tables, selects how the gradient of each is communicated, and stores collected
// rows.
#include "train/embedding_tables.hpp"

#include <algorithm>

namespace scalemark {

namespace {

TableGradient gradient_of(const EmbeddingTable& table, const ResolvedConfig& config) {
  switch (config.embedding_gradients) {
    case EmbeddingGradients::dense:
      break;
    case EmbeddingGradients::sparse:
      return table.tied && config.tied_gradient == TiedGradient::dense ? TableGradient::beside
                                                                       : TableGradient::gathered;
    case EmbeddingGradients::sparse_as_dense:
      return TableGradient::converted;
  }
  return TableGradient::dense;
}

/// Returns "word_embedding" for "word_embedding.weight".
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config) {
  for (EmbeddingTable& table : tables) table.how = gradient_of(table, config);
  return tables;
}

void UseProbe::before_use(at::TensorList parameters) {
  for (const at::Tensor& leaf : parameters) {
    Uses& uses = uses_[leaf.unsafeGetTensorImpl()];
    if (uses.first < 0) {
      uses.first = announced_++;
      uses.block = block_;
    }
    if (uses.block != block_) uses.block = -1;
  }
}

at::Tensor UseProbe::compute_weight(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].all;
  return leaf;
}

bool UseProbe::takes_rows(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].lookups;
  return false;
}

std::vector<EmbeddingTable> UseProbe::tables(const Model& model) const {
  std::vector<EmbeddingTable> tables;
  int parameter = 0;
  for (const auto& leaf : model.named_parameters()) {
    const auto found = uses_.find(leaf.value().unsafeGetTensorImpl());
    if (found != uses_.end() && found->second.lookups > 0)
      tables.push_back({parameter, layer_of(leaf.key()), leaf.value().size(0), leaf.value().size(1),
                        found->second.all > found->second.lookups});
    ++parameter;
  }
  return tables;
}

std::vector<int> UseProbe::first_uses(const Model& model) const {
  std::vector<int> first;
  for (const at::Tensor& leaf : model.parameters()) first.push_back(uses_of(leaf).first);
  return first;
}

std::vector<int> UseProbe::blocks(const Model& model) const {
  std::vector<int> blocks;
  for (const at::Tensor& leaf : model.parameters()) blocks.push_back(uses_of(leaf).block);
  return blocks;
}

std::vector<bool> UseProbe::computed_with(const Model& model) const {
  std::vector<bool> computed;
  for (const at::Tensor& leaf : model.parameters()) computed.push_back(uses_of(leaf).all > 0);
  return computed;
}

UseProbe::Uses UseProbe::uses_of(const at::Tensor& leaf) const {
  const auto found = uses_.find(leaf.unsafeGetTensorImpl());
  return found == uses_.end() ? Uses() : found->second;
}

RowBuffer::RowBuffer(std::int64_t width, std::int64_t dense, const at::TensorOptions& fp32)
    : dense_(dense),
      indices_(at::arange(dense, fp32.dtype(at::kLong))),
      rows_(at::zeros({dense, width}, fp32)) {
  clear();
}

void RowBuffer::clear() { count_ = dense_; }

void RowBuffer::append(const at::Tensor& indices, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  const std::int64_t more = indices.numel();
  reserve(count_ + more);
  indices_.narrow(0, count_, more).copy_(indices);
  rows_.narrow(0, count_, more).copy_(rows);
  count_ += more;
}

void RowBuffer::reserve(std::int64_t count) {
  if (count <= rows_.size(0)) return;
  const std::int64_t size = std::max(count, dense_ + 2 * (rows_.size(0) - dense_));
  const auto larger = [&](const at::Tensor& old, at::IntArrayRef shape) {
    at::Tensor made = at::empty(shape, old.options());
    made.narrow(0, 0, count_).copy_(old.narrow(0, 0, count_));
    return made;
  };
  indices_ = larger(indices_, {size});
  rows_ = larger(rows_, {size, rows_.size(1)});
}

}  // namespace scalemark
