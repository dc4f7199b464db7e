// Implements the functions for a build without Gloo's headers by refusing.
#include "train/c10d_reducer.hpp"

#include "error.hpp"

namespace scalemark {
namespace {

constexpr char kMissing[] =
    "--reducer c10d: this build lacks it, for the headers of Gloo were not found, or LibTorch is "
    "older than 2.11; install "
    "libgloo-dev and build again (scripts/setup), or use --reducer scalemark";

}  // namespace

bool has_c10d() { return false; }

std::unique_ptr<Communicator> make_c10d_communicator(RankGroup&, int) {
  throw EnvironmentError(kMissing);
}

std::unique_ptr<StepReducer> make_c10d_reducer(Trainer::Impl&, Communicator&) {
  throw EnvironmentError(kMissing);
}

}  // namespace scalemark
