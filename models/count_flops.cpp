// Counts FLOPs with callbacks of LibTorch that observe every operator.
#include "models/count_flops.hpp"

#include <memory>

#include "models/operator_flops.hpp"

namespace scalemark {
namespace {

thread_local std::int64_t flops = 0, depth = 0;

/// A counted operator that is running. The operators that it calls are part of it.
struct Call : at::ObserverContext {
  explicit Call(CountedCall counted) : call(counted) { ++depth; }
  ~Call() override { --depth; }
  CountedCall call;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  const CountedOperator* counted = depth > 0 ? nullptr : find_counted(call.name());
  return counted ? std::make_unique<Call>(CountedCall(*counted, call)) : nullptr;
}

void on_end(const at::RecordFunction& call, at::ObserverContext* context) {
  if (const auto* counted = dynamic_cast<Call*>(context)) flops += counted->call.flops(call);
}

}  // namespace

std::int64_t count_forward_flops(Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  flops = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  model.forward(batch);
  at::removeCallback(handle);
  return flops;
}

}  // namespace scalemark
