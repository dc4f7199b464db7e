// See command_line.hpp.
#include "commands/command_line.hpp"

#include "platform/announced_rank.hpp"
#include "platform/platform.hpp"

namespace scalemark {

bool speaks() { return rank_before_mpi() == 0; }

void refuse_ranks(const std::string& why) {
  if (launcher_hint(process_environment()))
    throw ConfigError(why +
                      ": start it once, not by mpirun or srun (in a batch script of Slurm call it "
                      "as it is)");
}

}  // namespace scalemark
