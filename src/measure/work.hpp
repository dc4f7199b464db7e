// What was done and how long it took: the one place where rates are made of both.
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

/// All units and all seconds of several repeats: at the rate of the total, a long one weighs more
/// than a short one.
template <typename Repeats>
Work total(const Repeats& repeats) {
  Work sum;
  for (const Work& work : repeats) sum += work;
  return sum;
}

}  // namespace scalemark
