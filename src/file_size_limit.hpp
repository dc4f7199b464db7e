// The size that files of this process may have (RLIMIT_FSIZE, ulimit -f). prepare_streams() has
// SIGXFSZ ignored, so that a write beyond it fails and says so.
#pragma once

#include <string>

namespace scalemark {

/// What an errno of a write means, with the limit and the remedy where it was that.
std::string write_error_words(int error);

/// Throws ResultError where the limit is below what several ranks need, or one below mpirun: they
/// share memory in files. Open MPI would end them by a signal, or send everything over TCP.
void refuse_too_small_for_ranks();

}  // namespace scalemark
