// Holds the amount of work and the time that it took. This is the only place where rates are
// computed from both.
#pragma once

namespace scalemark {

/// Units (images, tokens, sequences) and the seconds that they took.
struct Work {
  double units = 0, seconds = 0;

  double rate() const { return units / seconds; }
  Work& operator+=(const Work& other) {
    units += other.units;
    seconds += other.seconds;
    return *this;
  }
};

/// Adds up all units and all seconds of several repeats, so that a long repeat has more weight in
/// the rate of the total than a short one.
template <typename Repeats>
Work total(const Repeats& repeats) {
  Work sum;
  for (const Work& work : repeats) sum += work;
  return sum;
}

}  // namespace scalemark
