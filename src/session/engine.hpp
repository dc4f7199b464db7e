// The engine's way in, apart from its commands, so that its main needs no header of LibTorch.
#pragma once

namespace scalemark {

/// Parses, starts MPI under the start-up deadline, dispatches, agrees on the exit code, finalises.
int engine_main(int argc, char** argv);

}  // namespace scalemark
