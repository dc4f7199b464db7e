// The readers of files that anyone may have written, as functions of bytes: for libFuzzer, and for
// the corpus as a unit test.
#pragma once

#include <span>
#include <string_view>

namespace scalemark::fuzz {

struct Target {
  std::string_view name;  ///< also the folder of its corpus
  /// Reads the text and what follows from it. Returns, or throws an Error with a message that can
  /// be shown; anything else is a fault.
  void (*read)(std::string_view text);
};

std::span<const Target> targets();

/// Calls it; terminates the program with a message on anything but success or a proper Error.
void try_out(const Target& target, std::string_view text);

}  // namespace scalemark::fuzz
