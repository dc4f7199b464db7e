// What this binary is and was built with. The only file that knows the git revision, so the only
// one that a commit recompiles.
#include <optional>
#include <string>
#include <string_view>

#include "build_facts.hpp"
#include "build_revision.hpp"
#include "config/run_config.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
std::string or_unknown(std::string_view text) {
  return std::string(text.empty() ? "unknown" : text);
}

std::optional<std::string> if_any(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}
}  // namespace

record::Build build_info() {
  namespace facts = build_facts;
  return {.version = facts::kVersion,
          .revision = or_unknown(facts::kRevision),
          .compiler = facts::kCompiler,
          .build_type = facts::kBuildType,
          .libtorch = if_any(facts::kTorch),
          .mpi = if_any(facts::kMpi),
          .cuda = if_any(facts::kCuda),
          .nccl = if_any(facts::kNccl),
          .committed_at = if_any(facts::kCommittedAt)};
}

bool has_own_kernels() { return build_facts::kKernels; }
bool has_triton_kernels() { return build_facts::kTriton; }

std::string linked_torch() { return build_facts::kTorchLibrary; }

}  // namespace scalemark
