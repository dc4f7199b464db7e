// The front door of scalemark; see src/commands/front_door.hpp.
#include "commands/front_door.hpp"

int main(int argc, char** argv) { return scalemark::front_door(argc, argv); }
