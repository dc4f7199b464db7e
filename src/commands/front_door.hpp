// The program `scalemark`: subcommands, help and version; run, scale and infer go on to the engine
// or the launcher. Without LibTorch, MPI and CUDA, so that every refusal of a configuration comes
// within milliseconds.
#pragma once

#include <string>

namespace scalemark {

/// What `scalemark --help` prints.
std::string overview();

/// The exit code of the process. Does not return where it becomes the engine.
int front_door(int argc, char** argv);

}  // namespace scalemark
