// What this binary is and was built with. The only file that knows the git revision, so the only
// one that a commit recompiles.
#include <string_view>

#include "build_facts.hpp"
#include "build_revision.hpp"
#include "config/run_config.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
Json or_unknown(std::string_view text) { return text.empty() ? "unknown" : text; }
}  // namespace

Json build_info() {
  namespace facts = build_facts;
  return {{"version", facts::kVersion},
          {"revision", or_unknown(facts::kRevision)},
          {"compiler", facts::kCompiler},
          {"build_type", facts::kBuildType},
          {"libtorch", null_if_empty(facts::kTorch)},
          {"mpi", null_if_empty(facts::kMpi)},
          {"cuda", null_if_empty(facts::kCuda)},
          {"nccl", null_if_empty(facts::kNccl)},
          {"committed_at", null_if_empty(facts::kCommittedAt)}};
}

bool has_own_kernels() { return build_facts::kKernels; }

std::string linked_torch() { return build_facts::kTorchLibrary; }

}  // namespace scalemark
