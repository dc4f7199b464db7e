// One voice for the ranks of a host that have the same to say before MPI is up.
#pragma once

#include <string>

namespace scalemark {

/// True for the first process of this launch and host that asks with these words, as long as it
/// lives; and where nobody can know.
bool is_first_to_say(const std::string& what);

}  // namespace scalemark
