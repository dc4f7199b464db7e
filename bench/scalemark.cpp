// The front door of scalemark; see src/launch/front_door.hpp.
#include "launch/front_door.hpp"

int main(int argc, char** argv) { return scalemark::front_door(argc, argv); }
