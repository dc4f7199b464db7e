// What is made of NVML's answers, on tables of machines that are not here: a whole GPU, and one in
// MIG mode whose slices have holes between their indices.
#include "platform/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "platform/sources.hpp"

namespace scalemark::nvml_test {
namespace {

using Device = NvmlDevice;
using ::testing::ElementsAre;

constexpr int kNotFound = 6;

struct FakeDevice {
  std::string name, uuid;
  unsigned long long memory = 0;
  bool mig = false;
  std::array<int, 4> slices{-1, -1, -1, -1};  ///< index in kDevices
};
/// 0 and 1 are GPUs, the others slices of the second.
const std::array<FakeDevice, 4> kDevices{
    FakeDevice{"H100", "GPU-aaaa", 80ULL << 30},
    FakeDevice{"A100", "GPU-bbbb", 40ULL << 30, true, {-1, 2, -1, 3}},
    FakeDevice{"A100 MIG 1g.5gb", "MIG-1111", 5ULL << 30},
    FakeDevice{"A100 MIG 3g.20gb", "MIG-2222", 20ULL << 30}};

Device handle_of(std::size_t index) {
  return reinterpret_cast<Device>(index + 1);  // null is no device
}
const FakeDevice& fake(Device device) {
  return kDevices[reinterpret_cast<std::size_t>(device) - 1];
}

int put(const std::string& text, char* buffer, unsigned size) {
  if (text.size() >= size) return 7;  // too small
  std::strcpy(buffer, text.c_str());
  return 0;
}

NvmlApi table() {
  NvmlApi api;
  api.error_string = [](int) { return "broken"; };
  api.driver_version = [](char* text, unsigned size) { return put("550.1", text, size); };
  api.count = [](unsigned* count) { return *count = 2, 0; };
  api.handle = [](unsigned index, Device* device) { return *device = handle_of(index), 0; };
  api.name = [](Device device, char* text, unsigned size) {
    return put(fake(device).name, text, size);
  };
  api.uuid = [](Device device, char* text, unsigned size) {
    return put(fake(device).uuid, text, size);
  };
  api.pci = [](Device, NvmlPciInfo* pci) { return put("00000000:FF:1F.0", pci->bus_id, 32); };
  api.memory = [](Device device, NvmlMemory* memory) {
    return memory->total = fake(device).memory, 0;
  };
  api.mig_mode = [](Device device, unsigned* current, unsigned* pending) {
    return *current = fake(device).mig, *pending = 0, 0;
  };
  api.most_slices = [](Device, unsigned* most) { return *most = 4, 0; };
  api.slice = [](Device device, unsigned index, Device* slice) {
    const int found = fake(device).slices[index];
    if (found < 0) return kNotFound;
    *slice = handle_of(static_cast<std::size_t>(found));
    return 0;
  };
  return api;
}

std::vector<std::string> slices_of(const GpuInfo& gpu) {
  std::vector<std::string> uuids;
  for (const MigSlice& slice : gpu.slices) uuids.push_back(slice.uuid);
  return uuids;
}

TEST(Nvml, ListsGpusAndTheSlicesOfThoseInMigMode) {
  const GpuList list = list_gpus(table(), std::nullopt);
  ASSERT_EQ(list.gpus.size(), 2u);
  EXPECT_EQ(list.driver_version, "550.1");
  EXPECT_EQ(list.gpus[0].uuid, "GPU-aaaa");
  EXPECT_FALSE(list.gpus[0].mig);
  EXPECT_EQ(list.gpus[0].pci_bus_id, "0000:ff:1f.0");
  EXPECT_TRUE(list.gpus[1].mig);
  EXPECT_THAT(slices_of(list.gpus[1]), ElementsAre("MIG-1111", "MIG-2222"));
  EXPECT_EQ(list.gpus[1].slices[1].name, "A100 MIG 3g.20gb");
  EXPECT_EQ(list.gpus[1].slices[1].memory_bytes, 20LL << 30);
}

TEST(Nvml, ADriverWithoutMigShowsWholeGpus) {
  NvmlApi old = table();
  old.slice = nullptr;
  const GpuList list = list_gpus(old, std::nullopt);
  ASSERT_EQ(list.gpus.size(), 2u);
  EXPECT_FALSE(list.gpus[1].mig);
  EXPECT_TRUE(list.gpus[1].slices.empty());
}

TEST(Nvml, VisibleSlicesAlone) {
  const auto seen = [](const char* variable) {
    std::vector<std::string> uuids;
    for (const GpuInfo& gpu : list_gpus(table(), variable).gpus) {
      uuids.push_back(gpu.uuid);
      for (const std::string& slice : slices_of(gpu)) uuids.push_back(slice);
    }
    return uuids;
  };
  EXPECT_THAT(seen("MIG-2222"), ElementsAre("GPU-bbbb", "MIG-2222"));
  EXPECT_THAT(seen("MIG-2222,0,MIG-11"),
              ElementsAre("GPU-bbbb", "MIG-2222", "MIG-1111", "GPU-aaaa"));
  EXPECT_THAT(seen("1"), ElementsAre("GPU-bbbb", "MIG-1111", "MIG-2222"));
  EXPECT_THAT(seen("0,MIG-9,1"), ElementsAre("GPU-aaaa"));
}

/// 16 bytes as CUDA gives them.
std::string named(const GpuList& list) {
  std::array<char, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(0xf0 + i);
  return uuid_of_cuda(bytes, list);
}
constexpr const char* kBytes = "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff";

TEST(CudaUuid, IsAGpusOrThatOfASliceAsTheDriverNamesIt) {
  GpuList list;
  EXPECT_EQ(named(list), std::string("GPU-") + kBytes) << "without NVML";
  list.of_machine.resize(2);
  list.of_machine[0].uuid = "GPU-other";
  list.of_machine[1].uuid = std::string("GPU-") + kBytes;
  list.gpus = list.of_machine;
  EXPECT_EQ(named(list), list.of_machine[1].uuid);

  list.of_machine[1].uuid = "GPU-another";
  EXPECT_EQ(named(list), std::string("GPU-") + kBytes) << "no GPU is in MIG mode";
  list.of_machine[1].mig = true;
  EXPECT_EQ(named(list), std::string("MIG-") + kBytes);
}

TEST(CudaUuid, OfAGpuInMigModeMeansItsOneVisibleSlice) {
  GpuList list;
  GpuInfo gpu;
  gpu.uuid = std::string("GPU-") + kBytes;
  gpu.mig = true;
  gpu.slices = {{"MIG-1", "", 0}, {"MIG-2", "", 0}};
  list.of_machine = list.gpus = {gpu};
  EXPECT_EQ(named(list), gpu.uuid) << "which of two slices is not told";
  list.gpus[0].slices = {{"MIG-2", "", 0}};
  EXPECT_EQ(named(list), "MIG-2");
}

TEST(GpuOf, FindsAGpuByItsOwnUuidAndByThatOfASlice) {
  const GpuList list = list_gpus(table(), std::nullopt);
  ASSERT_NE(gpu_of(list.gpus, "MIG-2222"), nullptr);
  EXPECT_EQ(gpu_of(list.gpus, "MIG-2222")->uuid, "GPU-bbbb");
  EXPECT_EQ(gpu_of(list.gpus, "GPU-aaaa"), &list.gpus[0]);
  EXPECT_EQ(gpu_of(list.gpus, "MIG-3333"), nullptr);
  EXPECT_EQ(gpu_of({GpuInfo{}}, ""), nullptr) << "a CPU has no UUID, a lost GPU tells none";
}

TEST(Nvml, NoGpuHasAReason) {
  EXPECT_THAT(list_gpus(table(), "7").reason, ::testing::HasSubstr("names none of the 2 GPUs"));
  NvmlApi none = table();
  none.count = [](unsigned* count) { return *count = 0, 0; };
  EXPECT_THAT(list_gpus(none, std::nullopt).reason, ::testing::HasSubstr("shows no GPU"));
  none.count = [](unsigned*) { return 999; };
  EXPECT_THAT(list_gpus(none, std::nullopt).reason, ::testing::HasSubstr("broken"));
}

}  // namespace
}  // namespace scalemark::nvml_test
