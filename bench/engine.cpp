// The engine: the program that trains. Started by the front door (bench/scalemark.cpp) in the same
// process.
#include "session/commands.hpp"

int main(int argc, char** argv) { return scalemark::engine_main(argc, argv); }
