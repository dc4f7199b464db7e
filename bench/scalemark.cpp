// The front door of scalemark; see src/commands/front_door.cpp.
#include "commands/subcommands.hpp"
#include "streams.hpp"

int main(int argc, char** argv) {
  scalemark::prepare_streams();
  return scalemark::front_door(argc, argv);
}
