// Other tests of the same question, for the tables of docs/gate.md: is the new set slower?
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace scalemark::gate {

/// A one-sided p of "the new set is not slower", of logarithms of rates of the k-th launches of
/// both sets.
struct Rival {
  std::string name;
  bool paired;  ///< it uses that the k-th launches of both belong together
  std::function<double(const std::vector<double>& base, const std::vector<double>& fresh)> p;
};

/// scalemark's test of two samples and of pairs first, then the others.
std::vector<Rival> rivals();

}  // namespace scalemark::gate
