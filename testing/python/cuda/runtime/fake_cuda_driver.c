/* A driver library without a device: it records what is asked of it and can be told to fail.
 *
 * A module image is text, one kernel a line: its name and the sizes of its parameters, such as
 * "scale 8 8 4". Calls are recorded as lines of text in the order they come.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS 16
#define NUM_DEVICES 2

typedef struct {
  char name[64];
  int sizes[MAX_PARAMS];
  int count;
  int dynamic_shared;
} Kernel;

typedef struct {
  Kernel kernels[8];
  int count;
} Module;

typedef struct {
  unsigned grid[3], block[3], shared;
  void* stream;
  struct {
    int id, padding;
    unsigned value[16];
  }* attributes;
  unsigned num_attributes;
} Config;

static char log_text[1 << 16];
static char failing[64];
static int failing_code;
static int static_shared, max_threads = 1024, max_shared = 101376, capturing, capture_mode;
static int contexts[NUM_DEVICES];
static __thread void* current[8];
static __thread int depth;

static void record(const char* format, ...) {
  va_list args;
  size_t used = strlen(log_text);
  va_start(args, format);
  vsnprintf(log_text + used, sizeof(log_text) - used, format, args);
  va_end(args);
}

static int result(const char* name) { return strcmp(name, failing) == 0 ? failing_code : 0; }

#define RETURN_IF_FAILING               \
  do {                                  \
    int code = result(__func__);        \
    if (code != 0) return code;         \
  } while (0)

/* -- controls ---------------------------------------------------------------------------------- */
const char* fake_log(void) { return log_text; }

void fake_reset(void) {
  log_text[0] = failing[0] = 0;
  static_shared = capturing = 0;
  max_threads = 1024;
  max_shared = 101376;
  depth = 0;
}

void fake_fail(const char* name, int code) {
  snprintf(failing, sizeof(failing), "%s", name);
  failing_code = code;
}

void fake_limits(int threads, int shared, int statically) {
  max_threads = threads;
  max_shared = shared;
  static_shared = statically;
}

void fake_capture(int on) { capturing = on; }

static void free_tensor(DLManagedTensorVersioned* tensor) {
  free(tensor->dl_tensor.data);
  free(tensor->dl_tensor.shape);
  free(tensor);
}

/* Stands for the allocator of a framework: memory of the host under the name of the device. */
int fake_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                  void (*set_error)(void*, const char*, const char*)) {
  size_t bytes = prototype->dtype.bits * prototype->dtype.lanes / 8;
  if (result(__func__) != 0) {
    set_error(context, "RuntimeError", "the device is full\nand more");
    return -1;
  }
  DLManagedTensorVersioned* tensor = calloc(1, sizeof(*tensor));
  tensor->version.major = DLPACK_MAJOR_VERSION;
  tensor->deleter = free_tensor;
  tensor->dl_tensor = *prototype;
  tensor->dl_tensor.shape = malloc(sizeof(int64_t) * (prototype->ndim + 1));
  for (int i = 0; i < prototype->ndim; ++i) {
    tensor->dl_tensor.shape[i] = prototype->shape[i];
    bytes *= prototype->shape[i];
  }
  tensor->dl_tensor.data = calloc(1, bytes + 1);
  record("allocate %zu on %d:%d\n", bytes, prototype->device.device_type,
         prototype->device.device_id);
  *out = tensor;
  return 0;
}

/* -- the driver -------------------------------------------------------------------------------- */
int cuInit(unsigned flags) {
  (void)flags;
  RETURN_IF_FAILING;
  return 0;
}

/* How cuda-python finds the functions above and below. */
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status) {
  char versioned[80];
  Dl_info self;
  (void)version, (void)flags, (void)status;
  dladdr((void*)cuInit, &self);
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  snprintf(versioned, sizeof(versioned), "%s_v2", name);
  *function = dlsym(library, name);
  if (*function == NULL) *function = dlsym(library, versioned);
  return *function == NULL ? 500 : 0;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : code == 720 ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
          : code == 3   ? "CUDA_ERROR_NOT_INITIALIZED"
                        : NULL;
  return *name == NULL;
}

int cuGetErrorString(int code, const char** text) {
  *text = code == 700 ? "an illegal memory access was encountered" : NULL;
  return *text == NULL;
}

int cuDeviceGetCount(int* count) {
  *count = result(__func__) ? 0 : NUM_DEVICES;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < NUM_DEVICES ? 0 : 101;
}

int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, size, "Fake GPU %d", device);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 5: *value = 2147483647; return 0;
    case 6:
    case 7: *value = 65535; return 0;
    case 16: *value = 4; return 0;
    case 75: *value = 8; return 0;
    case 76: *value = 9; return 0;
    case 97: *value = max_shared; return 0;
    default: return 1;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  RETURN_IF_FAILING;
  record("retain %d\n", device);
  *context = &contexts[device];
  return 0;
}

int cuCtxGetCurrent(void** context) {
  RETURN_IF_FAILING;
  *context = depth ? current[depth - 1] : NULL;
  return 0;
}

int cuCtxGetDevice(int* device) {
  if (!depth) return 201;
  *device = (int)((int*)current[depth - 1] - contexts);
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  current[depth++] = context;
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  *context = current[--depth];
  return 0;
}

static int current_device(void) {
  int device = -1;
  cuCtxGetDevice(&device);
  return device;
}

int cuModuleLoadData(void** out, const void* image) {
  Module* module = calloc(1, sizeof(Module));
  const char* text = image;
  int used;
  RETURN_IF_FAILING;
  while (sscanf(text, " %63s%n", module->kernels[module->count].name, &used) == 1) {
    Kernel* kernel = &module->kernels[module->count++];
    kernel->dynamic_shared = 49152 - static_shared;
    text += used;
    while (sscanf(text, " %d%n", &kernel->sizes[kernel->count], &used) == 1) {
      kernel->count++;
      text += used;
    }
  }
  record("load on %d relaxed %d\n", current_device(), capture_mode == 2);
  *out = module;
  return 0;
}

int cuModuleUnload(void* module) {
  record("unload on %d\n", current_device());
  free(module);
  return 0;
}

int cuModuleGetFunction(void** function, void* opaque, const char* name) {
  Module* module = opaque;
  for (int i = 0; i < module->count; ++i) {
    if (strcmp(module->kernels[i].name, name) == 0) {
      *function = &module->kernels[i];
      return 0;
    }
  }
  return 500;
}

int cuFuncGetAttribute(int* value, int attribute, void* function) {
  switch (attribute) {
    case 0: *value = max_threads; return 0;
    case 1: *value = static_shared; return 0;
    case 4: *value = 40; return 0;
    case 8: *value = ((Kernel*)function)->dynamic_shared; return 0;
    default: return 1;
  }
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  Kernel* kernel = function;
  RETURN_IF_FAILING;
  if (attribute == 8) kernel->dynamic_shared = value;
  record("set %s %d = %d\n", kernel->name, attribute, value);
  return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared) {
  (void)function, (void)threads, (void)shared;
  *blocks = 2;
  return 0;
}

int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = capturing;
  return 0;
}

int cuStreamSynchronize(void* stream) {
  record("synchronize %p\n", stream);
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return 0;
}

int cuLaunchKernelEx(const Config* config, void* function, void** params, void** extra) {
  const Kernel* kernel = function;
  RETURN_IF_FAILING;
  (void)extra;
  record("launch %s on %d grid %u,%u,%u block %u,%u,%u shared %u stream %#zx", kernel->name,
         current_device(), config->grid[0], config->grid[1], config->grid[2], config->block[0],
         config->block[1], config->block[2], config->shared, (size_t)config->stream);
  for (unsigned i = 0; i < config->num_attributes; ++i) {
    const unsigned* value = config->attributes[i].value;
    int dims = config->attributes[i].id == 4 ? 3 : 1;
    record(" attribute %d:", config->attributes[i].id);
    for (int d = 0; d < dims; ++d) record("%s%u", d ? "," : "", value[d]);
  }
  record(" args");
  for (int i = 0; i < kernel->count; ++i) {
    uint64_t value = 0;
    memcpy(&value, params[i], kernel->sizes[i]);
    record(" %#llx", (unsigned long long)value);
  }
  record("\n");
  return 0;
}
