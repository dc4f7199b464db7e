// Declares the CPU as a device, for the builds with and without CUDA.
#pragma once

#include <memory>

#include "train/device_backend.hpp"

namespace scalemark {
std::unique_ptr<DeviceBackend> make_cpu_backend();
}  // namespace scalemark
