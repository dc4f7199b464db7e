// The entry of libFuzzer: one program for all targets, as SCALEMARK_FUZZ names it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/targets.hpp"

namespace {

const scalemark::fuzz::Target& chosen() {
  const char* name = std::getenv("SCALEMARK_FUZZ");
  for (const auto& target : scalemark::fuzz::targets())
    if (name && target.name == name) return target;
  std::fputs("SCALEMARK_FUZZ names none of:", stderr);
  for (const auto& target : scalemark::fuzz::targets())
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const scalemark::fuzz::Target& target = chosen();
  scalemark::fuzz::try_out(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
