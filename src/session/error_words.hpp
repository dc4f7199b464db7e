// Words an error that ends a measurement for people.
#pragma once

#include <exception>
#include <string>

#include "session/session.hpp"

namespace scalemark {

/// Returns words_of() the error. Where memory ran out, the text also names the batch, what this
/// rank has held, and the remedy.
std::string measuring_words(const std::exception& error, const Session& session);

}  // namespace scalemark
