// The data check over the very gradient buffers that training reduces. On CUDA, values are written
// and compared on the host and copied to the buffers for each allreduce.
#include <map>

#include "comm/gradient_reducer.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

/// Hands host buffers to a communicator of the device: copies in, reduces in place there, copies
/// out.
class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(Communicator& inner, DeviceBackend& device) : inner_(inner), device_(device) {}
  void pair(const at::Tensor& host, const at::Tensor& on_device) {
    pairs_[host.data_ptr()] = {host, on_device};
  }

  std::string_view name() const override { return inner_.name(); }
  int size() const override { return inner_.size(); }
  std::string algorithm() const override { return inner_.algorithm(); }
  std::string transport() const override { return inner_.transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return inner_.wire_bytes(bytes); }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream) override {
    const auto& [host, on_device] = pairs_.at(buffer.data);
    on_device.copy_(host);
    inner_.allreduce({on_device.data_ptr(), buffer.count, buffer.type}, device_.stream());
    host.copy_(on_device);  // waits for the stream
    return std::make_unique<Done>();
  }

 private:
  struct Done : Pending {
    void wait() override {}
  };
  Communicator& inner_;
  DeviceBackend& device_;
  std::map<void*, std::pair<at::Tensor, at::Tensor>> pairs_;  ///< host, device; by host address
};

}  // namespace

void check_gradient_buffers(Communicator& communicator, FlatParameters& parameters,
                            DeviceBackend& device, int rank, bool corrupt) {
  const at::NoGradGuard no_grad;
  if (device.device().is_cpu()) {
    check_allreduce(communicator, parameters.gradient_buffers(), rank, corrupt);
  } else {
    StagedCommunicator staged(communicator, device);
    std::vector<Buffer> host_buffers;
    for (const Bucket& bucket : parameters.buckets()) {
      const at::Tensor host = at::empty({bucket.count}, at::kFloat);
      staged.pair(host, bucket.gradients);
      host_buffers.push_back(
          {host.data_ptr(), static_cast<std::size_t>(bucket.count), DataType::f32});
    }
    check_allreduce(staged, host_buffers, rank, corrupt);
  }
  for (Bucket& bucket : parameters.buckets()) bucket.gradients.zero_();  // padding must stay zero
}

}  // namespace scalemark
