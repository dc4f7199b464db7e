#include "lab/simulation/programs.hpp"

int main(int argc, char** argv) {
  return scalemark::simulation::history_simulation({argv + 1, argv + argc});
}
