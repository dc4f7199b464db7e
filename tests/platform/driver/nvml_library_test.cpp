// NVML as a library that is found, loaded and asked: fake_nvml.c, in processes of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "platform/energy.hpp"
#include "platform/gpu_health.hpp"
#include "platform/machine_watch.hpp"
#include "platform/nvml.hpp"

namespace scalemark::nvml_library_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpu = "GPU-00000000-1111-2222-3333-444444444444";
constexpr const char* kSecondGpu = "GPU-00000001-1111-2222-3333-444444444444";
constexpr const char* kSlice = "MIG-00000000-1111-2222-3333-555555555551";
constexpr const char* kSecondSlice = "MIG-00000000-1111-2222-3333-555555555552";
/// What a real driver answers where it can't: not supported, no permission, GPU lost, unknown.
constexpr int kNotSupported = 3, kLost = 15;
constexpr int kErrors[] = {kNotSupported, 4, kLost, 999};

/// Tests that one kind of library answers.
class WithLibrary : public testing::Test {
 protected:
  explicit WithLibrary(const char* kind) : kind_(kind) {}
  void SetUp() override {
    const char* kind = std::getenv("FAKE_NVML");
    if (kind == nullptr || std::string(kind) != kind_)
      GTEST_SKIP() << "`ctest -R platform.nvml` gives it its library";
  }
  void TearDown() override {
    for (const char* what : {"GPUS", "SLICES", "ERRORS", "MILLIJOULES", "REASONS", "XIDS"})
      unsetenv((std::string("FAKE_NVML_") + what).c_str());
  }
  static void given(const char* what, const std::string& value) {
    setenv((std::string("FAKE_NVML_") + what).c_str(), value.c_str(), 1);
  }
  static void given_error(const std::string& function, int error) {
    given("ERRORS", function + "=" + std::to_string(error));
  }

 private:
  std::string kind_;
};
struct NvmlLibraryCurrent : WithLibrary {
  NvmlLibraryCurrent() : WithLibrary("Current") {}
};
struct NvmlLibraryOlder : WithLibrary {
  NvmlLibraryOlder() : WithLibrary("Older") {}
};
struct NvmlLibraryTooOld : WithLibrary {
  NvmlLibraryTooOld() : WithLibrary("TooOld") {}
};
struct NvmlLibraryDamaged : WithLibrary {
  NvmlLibraryDamaged() : WithLibrary("Damaged") {}
};

/// Health with at least one look at the clocks, unless NVML tells none of them.
GpuHealth under_load(const std::string& uuid, bool tells_clocks = true) {
  GpuWatch watch(uuid);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  GpuHealth health;
  do {
    watch.begin_load();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    watch.end_load();
    const auto events = health.xids;  // the first answer has taken them
    health = watch.health();
    if (events && !events->empty()) health.xids = events;
  } while (tells_clocks && !health.load.sm_mhz && std::chrono::steady_clock::now() < deadline);
  return health;
}

MachineReading reading_of(const std::string& uuid) {
  return MachineWatch({{}, false, uuid}, 1000, "/none").stop().back();
}

TEST_F(NvmlLibraryCurrent, ListsGpus) {
  given("GPUS", "3");
  const GpuList list = visible_gpus();
  EXPECT_EQ(list.reason, "");
  EXPECT_EQ(list.driver_version, "580.65.06");
  ASSERT_EQ(list.gpus.size(), 3u);
  EXPECT_EQ(list.gpus[1].index, 1);
  EXPECT_EQ(list.gpus[1].uuid, kSecondGpu);
  EXPECT_EQ(list.gpus[1].name, "NVIDIA H100");
  EXPECT_EQ(list.gpus[1].pci_bus_id, "0000:f1:00.0");
  EXPECT_EQ(list.gpus[1].memory_bytes, 80LL << 30);
  EXPECT_FALSE(list.gpus[2].mig);
}

TEST_F(NvmlLibraryCurrent, WhatDoesNotStartSaysWhy) {
  given_error("nvmlInit_v2", 18);
  EXPECT_EQ(visible_gpus().reason, "NVML does not start: Driver/library version mismatch");
  EXPECT_THAT(GpuWatch(kGpu).health().reason, HasSubstr("version mismatch"));
  EXPECT_THAT(EnergyMeter(false, kGpu).stop().gpu_reason, HasSubstr("version mismatch"));
  EXPECT_FALSE(reading_of(kGpu).gpu_mhz);
  given_error("nvmlDeviceGetCount_v2", 999);
  EXPECT_EQ(visible_gpus().reason, "NVML cannot count GPUs: Unknown Error");
  given("ERRORS", "");
  given("GPUS", "0");
  EXPECT_THAT(visible_gpus().reason, HasSubstr("shows no GPU"));
}

TEST_F(NvmlLibraryCurrent, AGpuOfWhichTheDriverTellsNothingIsNotOffered) {
  given("GPUS", "2");
  for (const std::string function : {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"})
    for (const int error : kErrors) {
      given_error(function + ":0", error);
      const GpuList list = visible_gpus();
      ASSERT_EQ(list.gpus.size(), 1u) << function << error;
      EXPECT_EQ(list.gpus[0].uuid, kSecondGpu);
      EXPECT_EQ(list.reason, "");
      ASSERT_EQ(list.of_machine.size(), 2u);
      EXPECT_THAT(list.of_machine[0].reason, HasSubstr("GPU 0: "));
    }
  given_error("nvmlDeviceGetUUID", kLost);
  EXPECT_TRUE(visible_gpus().gpus.empty());
  EXPECT_EQ(visible_gpus().reason, "GPU 0: GPU is lost");
}

TEST_F(NvmlLibraryCurrent, WhatAGpuDoesNotTellIsUnknownInTheRecord) {
  given("ERRORS", "nvmlDeviceGetMemoryInfo=4,nvmlDeviceGetName=999,nvmlDeviceGetPciInfo_v3=15");
  const SystemInfo system = system_info();
  ASSERT_EQ(system.json["gpus"].size(), 1u);
  EXPECT_EQ(system.json["gpus"][0]["uuid"], kGpu);
  for (const char* key : {"memory_bytes", "name", "pci_bus_id"}) {
    EXPECT_TRUE(system.json["gpus"][0][key].is_null()) << key;
    EXPECT_EQ(system.unavailable.at(std::string("system.gpus.") + key), "NVML does not tell");
  }
}

TEST_F(NvmlLibraryCurrent, SlicesAreFoundByWhatCudaTells) {
  given("SLICES", "2");
  const GpuList list = visible_gpus();
  ASSERT_EQ(list.gpus.size(), 1u);
  EXPECT_TRUE(list.gpus[0].mig);
  ASSERT_EQ(list.gpus[0].slices.size(), 2u);
  EXPECT_EQ(list.gpus[0].slices[1].uuid, kSecondSlice);
  EXPECT_EQ(list.gpus[0].slices[1].memory_bytes, 10LL << 30);
  const std::string bytes("\0\0\0\0\x11\x11\x22\x22\x33\x33UUUUUR", 16);
  EXPECT_EQ(uuid_of_cuda(std::span<const char, 16>(bytes), list), kSecondSlice);
  EXPECT_EQ(gpu_of(list.gpus, kSecondSlice), &list.gpus[0]);
  given("SLICES", "0");
  EXPECT_TRUE(visible_gpus().gpus[0].mig);
  EXPECT_TRUE(visible_gpus().gpus[0].slices.empty());
}

TEST_F(NvmlLibraryCurrent, JoulesAreWhatTheCounterGrewBy) {
  given("MILLIJOULES", "5000");
  EnergyMeter meter(false, kGpu);
  given("MILLIJOULES", "12500");
  const Energy energy = meter.stop();
  EXPECT_DOUBLE_EQ(energy.gpu_joules.value_or(0), 7.5);
  EXPECT_EQ(energy.gpu_reason, "");
}

TEST_F(NvmlLibraryCurrent, JoulesThatAreNotKnownHaveAReason) {
  for (const int error : kErrors) {
    given("MILLIJOULES", "1");
    given_error("nvmlDeviceGetTotalEnergyConsumption", error);
    const Energy never = EnergyMeter(false, kGpu).stop();
    EXPECT_FALSE(never.gpu_joules);
    EXPECT_THAT(never.gpu_reason, HasSubstr("does not tell the energy of GPU-")) << error;
    given("ERRORS", "");
    EnergyMeter meter(false, kGpu);
    given("MILLIJOULES", "2");
    given_error("nvmlDeviceGetTotalEnergyConsumption", error);
    const Energy lost = meter.stop();
    EXPECT_FALSE(lost.gpu_joules);
    EXPECT_THAT(lost.gpu_reason, HasSubstr("does not tell the energy of GPU-")) << error;
  }
  given("ERRORS", "");
  EXPECT_THAT(EnergyMeter(false, kSecondGpu).stop().gpu_reason,
              HasSubstr("NVML does not find GPU-00000001"));
}

TEST_F(NvmlLibraryCurrent, ACounterThatStandsOrGoesBackTellsNoJoules) {
  for (const auto& [later, words] : {std::pair{"5000", "did not move"}, {"4000", "went back"}}) {
    given("MILLIJOULES", "5000");
    EnergyMeter meter(false, kGpu);
    given("MILLIJOULES", later);
    const Energy energy = meter.stop();
    EXPECT_FALSE(energy.gpu_joules);
    EXPECT_THAT(energy.gpu_reason, HasSubstr(words));
  }
}

TEST_F(NvmlLibraryCurrent, ASliceHasNoJoulesOfItsOwn) {
  given("SLICES", "1");
  EnergyMeter meter(false, kSlice);
  given("MILLIJOULES", "9000");
  const Energy energy = meter.stop();
  EXPECT_FALSE(energy.gpu_joules);
  EXPECT_THAT(energy.gpu_reason, HasSubstr("MIG-00000000-1111-2222-3333-555555555551 is a slice"));
}

TEST_F(NvmlLibraryCurrent, HealthOfAGpuAtWork) {
  given("REASONS", "0x24");  // power cap, thermal
  given("XIDS", "79,48");
  const GpuHealth health = under_load(kGpu);
  EXPECT_EQ(health.reason, "");
  EXPECT_EQ(health.memory_bytes, 80LL << 30);
  EXPECT_EQ(health.memory_free_bytes, 79LL << 30);
  EXPECT_EQ(health.load.sm_mhz, 1755);
  EXPECT_EQ(health.sm_max_mhz, 1980);
  EXPECT_EQ(health.load.memory_mhz, 2619);
  EXPECT_EQ(health.load.slowdowns, std::vector<std::string>{"sw_thermal"});
  EXPECT_EQ(health.load.power_capped, true);
  EXPECT_EQ(health.ecc_enabled, true);
  ASSERT_TRUE(health.ecc_after);
  EXPECT_EQ(health.ecc_after->corrected, 7u);
  EXPECT_EQ(health.ecc_after->uncorrected, 0u);
  EXPECT_EQ(health.nvlinks_active, 3);
  EXPECT_EQ(health.nvlinks_inactive, 1);
  ASSERT_TRUE(health.xids);
  EXPECT_THAT(*health.xids, ElementsAre(79, 48));
}

TEST_F(NvmlLibraryCurrent, XidsAreNoneUnknownOrMany) {
  EXPECT_EQ(GpuWatch(kGpu).health().xids, std::vector<int>{});
  for (const std::string function :
       {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2"})
    for (const int error : kErrors) {
      given_error(function, error);
      EXPECT_EQ(GpuWatch(kGpu).health().xids, std::nullopt) << function << error;
    }
  given("ERRORS", "");
  given("XIDS", "79*");  // again and again, for ever
  EXPECT_THAT(GpuWatch(kGpu).health().xids.value_or(std::vector<int>{}), testing::Contains(79));
}

/// One function that fails, and what must be unknown then; everything else is as before.
TEST_F(NvmlLibraryCurrent, WhatFailsIsUnknownAndNothingElse) {
  using Known = std::function<bool(const GpuHealth&, const MachineReading&)>;
  const std::vector<std::pair<std::string, Known>> known{
      {"nvmlDeviceGetClockInfo",
       [](auto& h, auto& r) { return h.load.sm_mhz || h.load.memory_mhz || r.gpu_mhz; }},
      {"nvmlDeviceGetMaxClockInfo",
       [](auto& h, auto&) { return h.sm_max_mhz || h.memory_max_mhz; }},
      {"nvmlDeviceGetCurrentClocksEventReasons",
       [](auto& h, auto&) { return h.load.slowdowns || h.load.power_capped; }},
      {"nvmlDeviceGetMemoryInfo",
       [](auto& h, auto& r) {
         return h.memory_bytes || h.memory_free_bytes || r.gpu_memory_bytes;
       }},
      {"nvmlDeviceGetEccMode", [](auto& h, auto&) { return h.ecc_enabled.has_value(); }},
      {"nvmlDeviceGetTotalEccErrors",
       [](auto& h, auto& r) { return h.ecc_before || h.ecc_after || r.gpu_errors; }},
      {"nvmlDeviceGetNvLinkState",
       [](auto& h, auto&) { return h.nvlinks_active || h.nvlinks_inactive; }},
      {"nvmlDeviceGetTemperature", [](auto&, auto& r) { return r.gpu_celsius.has_value(); }},
      {"nvmlDeviceGetPowerUsage", [](auto&, auto& r) { return r.gpu_watts.has_value(); }}};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string& failing = known[i].first;
    given_error(failing, kErrors[i % std::size(kErrors)]);
    const GpuHealth health = under_load(kGpu, failing != "nvmlDeviceGetClockInfo");
    const MachineReading reading = reading_of(kGpu);
    EXPECT_EQ(health.reason, "");
    for (const auto& [function, is_known] : known)
      EXPECT_EQ(is_known(health, reading), function != failing) << function << " of " << failing;
  }
}

TEST_F(NvmlLibraryCurrent, ASliceHasItsOwnMemoryAndTheClocksAndErrorsOfItsGpu) {
  given("SLICES", "2");
  given("XIDS", "31");
  const GpuHealth health = under_load(kSlice);
  EXPECT_EQ(health.memory_bytes, 10LL << 30);
  EXPECT_EQ(health.load.sm_mhz, 1755);
  EXPECT_EQ(health.load.slowdowns, std::vector<std::string>{});
  EXPECT_TRUE(health.ecc_after);
  EXPECT_EQ(health.xids, std::vector<int>{31});
  const MachineReading reading = reading_of(kSlice);
  EXPECT_EQ(reading.gpu_mhz, 1755);
  EXPECT_EQ(reading.gpu_celsius, 61);
  EXPECT_EQ(reading.gpu_watts, std::nullopt);
  EXPECT_EQ(reading.gpu_memory_bytes, 1 << 30);
  EXPECT_EQ(reading.gpu_errors, std::nullopt);
  for (const int error : kErrors) {
    given_error("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", error);
    EXPECT_THAT(GpuWatch(kSlice).health().reason,
                HasSubstr(std::string("does not find ") + kSlice));
    EXPECT_FALSE(reading_of(kSlice).gpu_mhz);
  }
}

TEST_F(NvmlLibraryCurrent, AGpuThatIsLostAtWorkLeavesWhatWasSeenBefore) {
  GpuWatch watch(kGpu);
  given("ERRORS",
        "nvmlDeviceGetClockInfo=15,nvmlDeviceGetCurrentClocksEventReasons=15,"
        "nvmlDeviceGetTotalEccErrors=15,nvmlEventSetWait_v2=15");
  watch.begin_load();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  watch.end_load();
  const GpuHealth health = watch.health();
  EXPECT_EQ(health.memory_bytes, 80LL << 30);
  EXPECT_TRUE(health.ecc_before);
  EXPECT_FALSE(health.ecc_after);
  EXPECT_FALSE(health.load.sm_mhz);
  EXPECT_FALSE(health.load.slowdowns);
  EXPECT_FALSE(health.xids);
}

TEST_F(NvmlLibraryOlder, IsUsedForWhatItHas) {
  given("SLICES", "2");
  given("REASONS", "0x8");
  const GpuList list = visible_gpus();
  ASSERT_EQ(list.gpus.size(), 1u);
  EXPECT_FALSE(list.gpus[0].mig);
  const GpuHealth health = under_load(kGpu);
  EXPECT_EQ(health.reason, "");
  EXPECT_EQ(health.load.slowdowns, std::vector<std::string>{"hw_slowdown"}) << "by its older name";
  EXPECT_FALSE(health.xids);
  EXPECT_FALSE(health.nvlinks_active);
}

TEST_F(NvmlLibraryTooOld, SaysSo) {
  EXPECT_THAT(visible_gpus().reason, HasSubstr("driver is too old"));
  EXPECT_THAT(EnergyMeter(false, kGpu).stop().gpu_reason, HasSubstr("driver is too old"));
}

TEST_F(NvmlLibraryDamaged, IsNotTakenForAMissingDriver) {
  EXPECT_THAT(visible_gpus().reason, HasSubstr("the NVIDIA driver's library does not load: "));
}

}  // namespace
}  // namespace scalemark::nvml_library_test
