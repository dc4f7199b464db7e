// What tests of whole trainings share.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "config/run_config.hpp"

namespace scalemark::testing {

/// A run of 2 + 12 steps of a few milliseconds, with several buckets of gradients.
inline RunConfig small_config() {
  RunConfig config;
  config.model = "smallnet";
  config.num_classes = 10;
  config.sequence_length = 16;  // of models that have sequences
  config.batch_size = 4;
  config.num_batches = 12;
  config.num_warmup_batches = 2;
  config.init_learning_rate = 0.02;
  config.bucket_mb = 0.02;
  return config;
}

/// Of a contiguous CPU tensor, to compare bit for bit between ranks.
inline std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace scalemark::testing
