// The parts of the coverage program.
#pragma once

namespace scalemark::coverage {

/// Prints the tables of intervals between launches; false where the promise is broken.
bool print_launches(int repetitions);

}  // namespace scalemark::coverage
