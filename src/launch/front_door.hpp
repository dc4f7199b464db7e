// The program `scalemark`: subcommands, help, version and lists; run, scale and infer go on to the
// engine or the launcher. Without LibTorch, MPI and CUDA, so that every refusal of a configuration
// comes within milliseconds.
#pragma once

namespace scalemark {

/// The exit code of the process. Does not return where it becomes the engine.
int front_door(int argc, char** argv);

}  // namespace scalemark
