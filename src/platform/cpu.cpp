// What /proc/cpuinfo says of the processor.
#include <string>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
bool has_word(const std::string& words, std::string_view word) {
  return (" " + words + " ").find(" " + std::string(word) + " ") != std::string::npos;
}
}  // namespace

bool cpuinfo_has_native(std::string_view cpuinfo, std::string_view precision) {
  if (precision == "fp32") return true;
  auto flags = line_value(cpuinfo, "flags");
  if (!flags) flags = line_value(cpuinfo, "Features");
  if (!flags) return false;
  if (precision == "bf16")
    return has_word(*flags, "avx512_bf16") || has_word(*flags, "amx_bf16") ||
           has_word(*flags, "bf16");
  if (precision == "fp16")
    return has_word(*flags, "avx512_fp16") || has_word(*flags, "amx_fp16") ||
           has_word(*flags, "asimdhp");
  if (precision == "int8")
    return has_word(*flags, "avx512_vnni") || has_word(*flags, "avx_vnni") ||
           has_word(*flags, "amx_int8") || has_word(*flags, "asimddp");
  return false;  // no CPU has tf32
}

std::optional<std::string> cpuinfo_model(std::string_view cpuinfo) {
  for (const char* key : {"model name", "Model", "Hardware"})
    if (auto value = line_value(cpuinfo, key); value && !value->empty()) return value;
  return std::nullopt;
}

bool cpu_has_native(const std::string& precision) {
  return cpuinfo_has_native(read_text("/proc/cpuinfo").value_or(""), precision);
}

}  // namespace scalemark
