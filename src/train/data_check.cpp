// Runs the data check on the gradient buffers that training reduces. On CUDA, values are written
// and compared on the host and copied to the buffers for each allreduce.
#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "comm/gradient_reducer.hpp"
#include "error.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

/// Passes host buffers to a communicator of the device: copies in, reduces in place there, copies
/// out.
class DeviceStagedCommunicator : public AsynchronousCommunicator {
 public:
  DeviceStagedCommunicator(Communicator& inner, DeviceBackend& device)
      : DeviceStagedCommunicator(inner, device, std::make_shared<Pairs>()) {}
  void pair(const at::Tensor& host, const at::Tensor& on_device) {
    (*pairs_)[host.data_ptr()] = {host, on_device};
  }

  std::string algorithm() const override { return inner_.algorithm(); }
  std::string transport() const override { return inner_.transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return inner_.wire_bytes(bytes); }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream) override {
    return on_device(buffer, buffer, [this](const Buffer& values, const Buffer&) {
      inner_.allreduce(values, device_.stream());
    });
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream) override {
    return on_device(all, mine, [this](const Buffer& sent, const Buffer& received) {
      asynchronous(inner_).start_reduce_scatter(sent, received, device_.stream())->wait();
    });
  }
  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream) override {
    return on_device(mine, all, [&](const Buffer& sent, const Buffer& received) {
      asynchronous(inner_).start_allgather(sent, received, counts, device_.stream())->wait();
    });
  }

 private:
  using Pairs = std::map<void*, std::pair<at::Tensor, at::Tensor>>;

  /// The replicas of `inner` get the same pairs.
  DeviceStagedCommunicator(Communicator& inner, DeviceBackend& device, std::shared_ptr<Pairs> pairs)
      : AsynchronousCommunicator({inner.name(), inner.size(), WireDtype::fp32, inner.moves_data()}),
        inner_(inner),
        device_(device),
        pairs_(std::move(pairs)) {
    if (Communicator* const replicas = inner.replicas())
      set_replicas(
          std::unique_ptr<Communicator>(new DeviceStagedCommunicator(*replicas, device, pairs_)));
  }

  /// Runs an operation on the device's buffers: copies in what is sent, and out what has come.
  template <typename F>
  std::unique_ptr<Pending> on_device(const Buffer& sent, const Buffer& received, F run) {
    const auto& [host_sent, device_sent] = pairs_->at(sent.data);
    const auto& [host_received, device_received] = pairs_->at(received.data);
    device_sent.copy_(host_sent);
    run(Buffer{device_sent.data_ptr(), sent.count, sent.type},
        Buffer{device_received.data_ptr(), received.count, received.type});
    host_received.copy_(device_received);  // waits for the stream
    return completed_operation();
  }

  Communicator& inner_;
  DeviceBackend& device_;
  std::shared_ptr<Pairs> pairs_;  ///< host, device; by host address
};

/// Runs one check after the other, also after one that has failed: a rank that finds something
/// wrong alone takes part in the others, for which its peers would wait.
class Checks {
 public:
  template <typename F>
  void run(F check) {
    try {
      check();
    } catch (const CommError&) {
      if (!first_) first_ = std::current_exception();
    }
  }
  /// Throws what the first check that failed has thrown.
  void end() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

/// Checks gathers of blocks in the form of table rows: their indices and their elements, with
/// different lengths for neighbouring ranks.
void check_gathers(Communicator& communicator, DeviceBackend& device, int rank, Checks& checks) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < communicator.size(); ++r) counts.push_back(10'000 + 100 * (r % 3));
  const auto own = static_cast<std::int64_t>(counts[static_cast<std::size_t>(rank)]);
  const auto total =
      static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  for (const auto& [scalar, type] :
       {std::pair{at::kLong, DataType::i64}, {at::kFloat, DataType::f32}}) {
    const at::Tensor mine = at::empty({own}, scalar), all = at::empty({total}, scalar);
    const Buffer sent{mine.data_ptr(), static_cast<std::size_t>(own), type};
    const Buffer received{all.data_ptr(), static_cast<std::size_t>(total), type};
    if (device.device().is_cpu()) {
      checks.run([&] { check_allgather(communicator, sent, received, counts, rank, false); });
      continue;
    }
    DeviceStagedCommunicator staged(communicator, device);
    staged.pair(mine, at::empty({own}, mine.options().device(device.device())));
    staged.pair(all, at::empty({total}, all.options().device(device.device())));
    checks.run([&] { check_allgather(staged, sent, received, counts, rank, false); });
  }
}

/// Checks the collectives of a division on its own buffers: a bucket's gradients are scattered, and
/// blocks gathered.
void check_division(Communicator& communicator, FlatParameters& parameters, DeviceBackend& device,
                    int rank, bool corrupt, Checks& checks) {
  const Division& division = parameters.division();
  const auto buffer_of = [](const at::Tensor& tensor) {
    return Buffer{tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), DataType::f32};
  };
  const auto check = [&](Communicator& over, const Buffer& all, const Buffer& mine,
                         const std::vector<std::size_t>& counts) {
    checks.run([&] { check_reduce_scatter(over, all, mine, rank, corrupt); });
    checks.run([&] { check_allgather(over, mine, all, counts, rank, false); });
  };
  for (const Bucket& bucket : parameters.buckets()) {
    const at::Tensor& whole = bucket.whole.gradients;
    hold_memory(whole, true);
    const std::vector<std::size_t> counts(static_cast<std::size_t>(division.ranks),
                                          static_cast<std::size_t>(bucket.count));
    if (device.device().is_cpu()) {
      check(communicator, buffer_of(whole), buffer_of(bucket.gradients), counts);
    } else {
      DeviceStagedCommunicator staged(communicator, device);
      const at::Tensor host_all = at::empty({bucket.whole.count}, at::kFloat),
                       host_mine = at::empty({bucket.count}, at::kFloat);
      staged.pair(host_all, whole);
      staged.pair(host_mine, bucket.gradients);
      check(staged, buffer_of(host_all), buffer_of(host_mine), counts);
    }
    whole.zero_();  // padding must stay zero
    bucket.gradients.zero_();
    if (division.frees_gradients()) hold_memory(whole, false);
  }
}

}  // namespace

void check_gradient_buffers(Communicator& communicator, FlatParameters& parameters,
                            DeviceBackend& device, int rank, bool corrupt) {
  const at::NoGradGuard no_grad;
  Checks checks;
  if (parameters.division().divides()) {
    check_division(communicator, parameters, device, rank, corrupt, checks);
    return checks.end();
  }
  if (device.device().is_cpu()) {
    checks.run(
        [&] { check_allreduce(communicator, parameters.gradient_buffers(), rank, corrupt); });
  } else {
    DeviceStagedCommunicator staged(communicator, device);
    std::vector<Buffer> host_buffers;
    for (const Bucket& bucket : parameters.buckets()) {
      const at::Tensor host = at::empty({bucket.count}, at::kFloat);
      staged.pair(host, bucket.gradients);
      host_buffers.push_back(
          {host.data_ptr(), static_cast<std::size_t>(bucket.count), DataType::f32});
    }
    checks.run([&] { check_allreduce(staged, host_buffers, rank, corrupt); });
  }
  const auto& tables = parameters.tables();
  if (std::any_of(tables.begin(), tables.end(),
                  [](const TableRows& rows) { return rows.table.gathered(); }))
    check_gathers(communicator, device, rank, checks);
  for (Bucket& bucket : parameters.buckets()) bucket.gradients.zero_();  // padding must stay zero
  checks.end();
}

}  // namespace scalemark
