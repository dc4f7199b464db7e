// What an error that ends a measurement says to people.
#pragma once

#include <exception>
#include <string>

#include "session/session.hpp"

namespace scalemark {

/// words_of(); of a lack of memory also the batch, what this rank has held and the remedy.
std::string measuring_words(const std::exception& error, const Session& session);

}  // namespace scalemark
