#include "lab/simulation/programs.hpp"

int main(int argc, char** argv) {
  return scalemark::simulation::divergence({argv + 1, argv + argc});
}
