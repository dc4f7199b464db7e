#include "lab/simulation/programs.hpp"

int main(int argc, char** argv) {
  return scalemark::simulation::projection_check({argv + 1, argv + argc});
}
