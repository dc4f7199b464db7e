// A value of a record that may be unknown: then the reason stands in its place.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace scalemark {

/// Why a value is unknown: `record.turns = Unknown{"the run was not interleaved"}`.
struct Unknown {
  std::string why;
};

/// A value, or the reason why there is none. In JSON an unknown value is null, and `unavailable`
/// gives the reason. Without a reason of its own it gets the one that its record is written with.
/// A number that is not finite is unknown.
template <typename T>
class Known {
 public:
  Known() = default;
  Known(Unknown reason) : why_(std::move(reason.why)) {}
  /// From exactly that type, so that a text literal still means the value.
  template <std::same_as<std::optional<T>> Optional>
  Known(Optional value) {
    if (value) *this = Known(*std::move(value));
  }
  Known(T value) : value_(std::move(value)) {
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(*value_)) *this = Unknown{"not a finite number"};
  }
  /// The value, or where there is none the reason.
  Known(std::optional<T> value, std::string why) {
    *this = value ? Known(*std::move(value)) : Known(Unknown{std::move(why)});
  }

  explicit operator bool() const noexcept { return value_.has_value(); }
  bool has_value() const noexcept { return value_.has_value(); }
  const T& operator*() const& noexcept { return *value_; }
  T& operator*() & noexcept { return *value_; }
  const T* operator->() const noexcept { return &*value_; }
  T* operator->() noexcept { return &*value_; }
  T value_or(T other) const { return value_.value_or(std::move(other)); }
  /// Makes the value, where there is none, from its default.
  T& emplace() {
    why_.clear();
    return value_.emplace();
  }
  /// Empty where the value is known, or where nobody gave a reason.
  const std::string& why() const noexcept { return why_; }

  /// A known value equals it; an unknown one equals nothing.
  bool operator==(const T& other) const { return value_ == other; }

 private:
  std::optional<T> value_;
  std::string why_;
};

/// A text; unknown where it is empty.
inline Known<std::string> known_text(std::string text) {
  return text.empty() ? Known<std::string>() : Known(std::move(text));
}

}  // namespace scalemark
