// The engine: the program that trains. Started by the front door (bench/scalemark.cpp) in the same
// process.
#include "session/engine.hpp"

#include "streams.hpp"

int main(int argc, char** argv) {
  scalemark::prepare_streams();
  return scalemark::engine_main(argc, argv);
}
