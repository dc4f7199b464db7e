// The manual page: every subcommand with its flags, from the tables of the program.
#pragma once

#include <string>

namespace scalemark {

/// scalemark.1, in the man macros of roff.
std::string manual_page();

}  // namespace scalemark
