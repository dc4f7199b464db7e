// Declares the engine's entry, apart from its commands, so that main needs no header of LibTorch.
#pragma once

namespace scalemark {

/// Parses, starts MPI under the start-up deadline, dispatches, agrees on the exit code and
/// finalises MPI. Returns the exit code of the process.
int engine_main(int argc, char** argv);

}  // namespace scalemark
