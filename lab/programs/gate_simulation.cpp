#include "lab/simulation/programs.hpp"

int main(int argc, char** argv) {
  return scalemark::simulation::gate_simulation({argv + 1, argv + argc});
}
