// Defines the names of enumerators, as users write them and records show them. An enum has names
// where a function names_of(Enum), beside it, lists them in its order.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace scalemark {

template <std::size_t N>
struct Names : std::array<std::string_view, N> {};
template <typename... Name>
Names(Name...) -> Names<sizeof...(Name)>;

template <typename E>
concept Named = std::is_enum_v<E> && requires(E value) {
  names_of(value);
};

/// Returns the name of an enumerator: to_string(Precision::bf16) is "bf16".
template <Named E>
std::string to_string(E value) {
  return std::string(names_of(value).at(static_cast<std::size_t>(value)));
}

/// Returns the enumerator of a name, or nullopt for an unknown name.
template <Named E>
std::optional<E> from_string(std::string_view name) {
  constexpr auto names = names_of(E{});
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

}  // namespace scalemark
