// Declares the loops of GELU over elements, for fp32 and bf16. Internal to gelu.cpp.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace scalemark {

/// y = gelu(x).
void gelu_forward(const float* x, float* y, std::int64_t count);
void gelu_forward(const c10::BFloat16* x, c10::BFloat16* y, std::int64_t count);

/// y = gelu(x) and dy *= gelu'(x).
void gelu_backward(const float* x, float* y, float* dy, std::int64_t count);
void gelu_backward(const c10::BFloat16* x, c10::BFloat16* y, c10::BFloat16* dy, std::int64_t count);

}  // namespace scalemark
