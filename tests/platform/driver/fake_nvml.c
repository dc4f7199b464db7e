/* A libnvidia-ml.so.1 of machines that are not here, for tests. Prototypes and structures: NVML API
 * reference. Variables of the environment, read at every call, say what it answers:
 *   FAKE_NVML_GPUS=2               how many GPUs (0 to 4)
 *   FAKE_NVML_SLICES=1             MIG slices of the last GPU (0 to 3); not set: MIG mode is off.
 *                                  Slice i has index 2i + 1: real indices have holes, too
 *   FAKE_NVML_ERRORS=nvmlInit_v2=18,nvmlDeviceGetClockInfo:1=15
 *                                  errors of functions, of one GPU and its slices alone
 *   FAKE_NVML_MILLIJOULES, FAKE_NVML_REASONS, FAKE_NVML_SM_MHZ
 *                                  energy counter; bits of what holds the clocks down; clock
 *   FAKE_NVML_XIDS=79,48           XID events that wait
 * NVML_Older leaves out what a driver before MIG had not, NVML_TooOld what scalemark must have. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 4, MOST_SLICES = 3 };
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
enum { TIMEOUT = 10 };

typedef struct nvmlDevice_st {
  int gpu, slice; /* slice: 0 is the GPU itself */
} const* nvmlDevice_t;
typedef struct nvmlEventSet_st {
  const char* waiting;
  unsigned long long types;
  nvmlDevice_t gpu;
} * nvmlEventSet_t;
typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
} nvmlPciInfo_t;
typedef struct {
  unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
  nvmlDevice_t device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} nvmlEventData_t;
_Static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, bus_id) == 36, "nvml.h");
_Static_assert(sizeof(nvmlMemory_t) == 24 && sizeof(nvmlEventData_t) == 32, "nvml.h");

static struct nvmlDevice_st devices[MOST_GPUS][MOST_SLICES + 1];
static int started;

static unsigned long long number(const char* variable, unsigned long long otherwise) {
  const char* text = getenv(variable);
  return text ? strtoull(text, NULL, 0) : otherwise;
}
static int gpus(void) { return (int)number("FAKE_NVML_GPUS", 1); }
static int is_mig(int gpu) { return gpu == gpus() - 1 && getenv("FAKE_NVML_SLICES") != NULL; }
static int slices(int gpu) { return is_mig(gpu) ? (int)number("FAKE_NVML_SLICES", 0) : 0; }

/* What FAKE_NVML_ERRORS says of a function, and of a GPU where the word names one. */
static int error_of(const char* function, int gpu) {
  char word[96];
  const size_t named = (size_t)snprintf(word, sizeof word, "%s:%d=", function, gpu);
  const size_t plain = (size_t)snprintf(NULL, 0, "%s=", function);
  const char* at = getenv("FAKE_NVML_ERRORS");
  for (; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, word, named) == 0) return atoi(at + named);
    if (strncmp(at, function, plain - 1) == 0 && at[plain - 1] == '=') return atoi(at + plain);
  }
  return OK;
}
/* A call before nvmlInit, of no device, or that is to fail ends here. */
#define BEGIN(gpu)                             \
  do {                                         \
    if (started <= 0) return UNINITIALIZED;    \
    const int error = error_of(__func__, gpu); \
    if (error != OK) return error;             \
  } while (0)
#define BEGIN_OF(device)                  \
  do {                                    \
    if ((device) == NULL) return INVALID; \
    BEGIN((device)->gpu);                 \
  } while (0)
/* What a GPU tells and none of its slices. */
#define BEGIN_OF_GPU(device)                        \
  do {                                              \
    BEGIN_OF(device);                               \
    if ((device)->slice != 0) return NOT_SUPPORTED; \
  } while (0)

static nvmlDevice_t device_of(int gpu, int slice) {
  devices[gpu][slice].gpu = gpu;
  devices[gpu][slice].slice = slice;
  return &devices[gpu][slice];
}
static int put(char* text, unsigned size, const char* format, int gpu, int slice) {
  return (unsigned)snprintf(text, size, format, gpu, slice) < size ? OK : TOO_SMALL;
}
static int put_uuid(nvmlDevice_t device, char* text, unsigned size) {
  return put(text, size,
             device->slice == 0 ? "GPU-0000000%d-1111-2222-3333-444444444444"
                                : "MIG-0000000%d-1111-2222-3333-55555555555%d",
             device->gpu, device->slice);
}

int nvmlInit_v2(void) {
  const int error = error_of(__func__, -1);
  started += error == OK;
  return error;
}
int nvmlShutdown(void) {
  BEGIN(-1);
  --started;
  return OK;
}
const char* nvmlErrorString(int error) {
  switch (error) {
    case NOT_SUPPORTED:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case NOT_FOUND:
      return "Not Found";
    case 15:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  BEGIN(-1);
  return put(text, size, "580.65.06", 0, 0);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  BEGIN(-1);
  *count = (unsigned)gpus();
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  BEGIN((int)index);
  if (index >= (unsigned)gpus()) return INVALID;
  *device = device_of((int)index, 0);
  return OK;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  BEGIN(-1);
  for (int gpu = 0; gpu < gpus(); ++gpu)
    for (int slice = 0; slice <= slices(gpu); ++slice) {
      char own[64];
      *device = device_of(gpu, slice);
      if (put_uuid(*device, own, sizeof own) == OK && strcmp(own, uuid) == 0)
        return error_of(__func__, gpu);
    }
  return NOT_FOUND;
}
int nvmlDeviceGetName(nvmlDevice_t device, char* text, unsigned size) {
  BEGIN_OF(device);
  return put(text, size, device->slice ? "NVIDIA H100 MIG 1g.10gb" : "NVIDIA H100", 0, 0);
}
int nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned size) {
  BEGIN_OF(device);
  return put_uuid(device, text, size);
}
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  BEGIN_OF(device);
  memset(pci, 0xff, sizeof *pci);
  return put(pci->bus_id, sizeof pci->bus_id, "00000000:F%d:00.%d", device->gpu, 0);
}
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  BEGIN_OF(device);
  memory->total = (device->slice ? 10ull : 80ull) << 30;
  memory->free = memory->total - (1ull << 30);
  memory->used = 1ull << 30;
  return OK;
}
#ifndef NVML_TooOld
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules) {
  BEGIN_OF_GPU(device);
  *millijoules = number("FAKE_NVML_MILLIJOULES", 1000);
  return OK;
}
#endif

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned* mhz) {
  BEGIN_OF_GPU(device);
  *mhz = type == 1 ? (unsigned)number("FAKE_NVML_SM_MHZ", 1755) : 2619;
  return OK;
}
int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned* mhz) {
  BEGIN_OF_GPU(device);
  *mhz = type == 1 ? 1980 : 2619;
  return OK;
}
int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned* celsius) {
  BEGIN_OF_GPU(device);
  *celsius = sensor == 0 ? 61 : 0;
  return OK;
}
int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  BEGIN_OF_GPU(device);
  *milliwatts = 650500;
  return OK;
}
#ifdef NVML_Older
#define nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
#endif
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  BEGIN_OF_GPU(device);
  *reasons = number("FAKE_NVML_REASONS", 0);
  return OK;
}
int nvmlDeviceGetEccMode(nvmlDevice_t device, int* current, int* pending) {
  BEGIN_OF_GPU(device);
  *current = *pending = 1;
  return OK;
}
int nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int kind, int counter,
                                unsigned long long* errors) {
  BEGIN_OF_GPU(device);
  *errors = counter == 0 && kind == 0 ? 7 : 0;
  return OK;
}
#ifndef NVML_Older
int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  BEGIN_OF_GPU(device);
  *current = *pending = (unsigned)is_mig(device->gpu);
  return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  BEGIN_OF_GPU(device);
  *count = is_mig(device->gpu) ? 7 : 0;
  return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t* slice) {
  BEGIN_OF_GPU(device);
  const int number_of = (int)index / 2 + 1;
  if (index % 2 == 0 || number_of > slices(device->gpu)) return NOT_FOUND;
  *slice = device_of(device->gpu, number_of);
  return OK;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t slice, nvmlDevice_t* gpu) {
  BEGIN_OF(slice);
  if (slice->slice == 0) return INVALID;
  *gpu = device_of(slice->gpu, 0);
  return OK;
}
int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, int* on) {
  BEGIN_OF_GPU(device);
  if (link >= 4) return INVALID;
  *on = link != 3;
  return OK;
}
int nvmlEventSetCreate(nvmlEventSet_t* set) {
  BEGIN(-1);
  *set = calloc(1, sizeof **set);
  (*set)->waiting = getenv("FAKE_NVML_XIDS");
  return OK;
}
int nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  BEGIN_OF_GPU(device);
  set->types = types;
  set->gpu = device;
  return OK;
}
int nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* event, unsigned milliseconds) {
  if (set->gpu == NULL || milliseconds != 0) return INVALID;
  BEGIN(set->gpu->gpu);
  if (set->waiting == NULL || *set->waiting == '\0' || !(set->types & 0x8)) return TIMEOUT;
  char* end;
  event->device = set->gpu;
  event->type = 0x8;
  event->data = strtoull(set->waiting, &end, 10);
  event->gpu_instance = event->compute_instance = 0xffffffff;
  /* "79*" comes again and again. */
  if (*end != '*') set->waiting = *end == ',' ? end + 1 : end;
  return OK;
}
int nvmlEventSetFree(nvmlEventSet_t set) {
  BEGIN(-1);
  free(set);
  return OK;
}
#endif
