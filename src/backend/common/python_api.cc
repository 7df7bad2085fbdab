#include "python_api.h"

#include <dlfcn.h>
#include <tvm/ffi/c_api.h>

#include <atomic>

#include "errors.h"

namespace tilelang {
namespace runtime {
namespace {

namespace ffi = tvm::ffi;

/*! \brief Functions of the stable ABI, with object pointers left opaque. */
struct PythonFunctions {
  int (*is_initialized)();
  int (*ensure)();
  void (*release)(int);
  void (*dec_ref)(void*);
  void* (*list_new)(intptr_t);
  int (*list_set)(void*, intptr_t, void*);
  void* (*type_of)(void*);
  void* (*get_attr)(void*, const char*);
  void* (*encode)(void*);
  const char* (*bytes)(void*);
  double (*as_double)(void*);
  int (*is_true)(void*);
  void* (*error_occurred)();
  void (*error_clear)();

  bool complete = false;

  static const PythonFunctions& Get() {
    static const PythonFunctions functions = Load();
    return functions;
  }

 private:
  template <typename F>
  static bool Find(const char* name, F* out) {
    *out = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
    return *out != nullptr;
  }

  static PythonFunctions Load() {
    PythonFunctions f;
    f.complete = Find("Py_IsInitialized", &f.is_initialized) &&
                 Find("PyGILState_Ensure", &f.ensure) && Find("PyGILState_Release", &f.release) &&
                 Find("Py_DecRef", &f.dec_ref) && Find("PyList_New", &f.list_new) &&
                 Find("PyList_SetItem", &f.list_set) && Find("PyObject_Type", &f.type_of) &&
                 Find("PyObject_GetAttrString", &f.get_attr) &&
                 Find("PyUnicode_AsUTF8String", &f.encode) && Find("PyBytes_AsString", &f.bytes) &&
                 Find("PyFloat_AsDouble", &f.as_double) && Find("PyObject_IsTrue", &f.is_true) &&
                 Find("PyErr_Occurred", &f.error_occurred) && Find("PyErr_Clear", &f.error_clear);
    return f;
  }
};

/*! \brief Holds the interpreter lock in a scope. */
class WithInterpreter {
 public:
  WithInterpreter() : py(PythonFunctions::Get()), state_(py.ensure()) {}
  ~WithInterpreter() { py.release(state_); }
  WithInterpreter(const WithInterpreter&) = delete;
  WithInterpreter& operator=(const WithInterpreter&) = delete;

  const PythonFunctions& py;

 private:
  int state_;
};

void DeleteOpaque(void* object) {
  if (!PythonAvailable()) return;  // the interpreter is gone, and the object with it
  WithInterpreter scope;
  scope.py.dec_ref(object);
}

void* ObjectOf(const ffi::AnyView& value) {
  TVMFFIAny raw = value.CopyToTVMFFIAny();
  return TVMFFIOpaqueObjectGetCellPtr(raw.v_obj)->handle;
}

std::string NameOfType(const PythonFunctions& py, void* object) {
  std::string text = "object";
  void* type = py.type_of(object);
  void* name = type ? py.get_attr(type, "__name__") : nullptr;
  void* encoded = name ? py.encode(name) : nullptr;
  if (encoded != nullptr) text = py.bytes(encoded);
  for (void* item : {type, name, encoded}) {
    if (item != nullptr) py.dec_ref(item);
  }
  if (py.error_occurred()) py.error_clear();
  return text;
}

std::atomic<const DLPackExchangeAPI*> torch_api{nullptr};

}  // namespace

const DLPackExchangeAPI* TorchExchangeApi() { return torch_api.load(std::memory_order_acquire); }

void SetTorchExchangeApi(void* api) {
  torch_api.store(static_cast<const DLPackExchangeAPI*>(api), std::memory_order_release);
}

bool PythonAvailable() {
  const PythonFunctions& py = PythonFunctions::Get();
  return py.complete && py.is_initialized();
}

std::string PythonTypeName(const ffi::AnyView& value) {
  if (!PythonAvailable()) return "object";
  WithInterpreter scope;
  return NameOfType(scope.py, ObjectOf(value));
}

std::optional<double> PythonAsDouble(const ffi::AnyView& value) {
  if (value.type_index() != ffi::TypeIndex::kTVMFFIOpaquePyObject || !PythonAvailable()) {
    return std::nullopt;
  }
  WithInterpreter scope;
  double result = scope.py.as_double(ObjectOf(value));
  if (scope.py.error_occurred()) {
    scope.py.error_clear();
    return std::nullopt;
  }
  return result;
}

std::optional<bool> PythonAsBool(const ffi::AnyView& value) {
  if (value.type_index() != ffi::TypeIndex::kTVMFFIOpaquePyObject || !PythonAvailable()) {
    return std::nullopt;
  }
  WithInterpreter scope;
  std::string name = NameOfType(scope.py, ObjectOf(value));
  if (name != "bool" && name != "bool_") return std::nullopt;
  return scope.py.is_true(ObjectOf(value)) == 1;
}

ffi::Any TensorsToPython(const std::vector<DLManagedTensorVersioned*>& tensors, bool as_list) {
  const DLPackExchangeAPI* api = TorchExchangeApi();
  WithInterpreter scope;
  const PythonFunctions& py = scope.py;
  void* result = as_list ? py.list_new(static_cast<intptr_t>(tensors.size())) : nullptr;
  bool ok = !as_list || result != nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    void* object = nullptr;
    if (!ok || api->managed_tensor_to_py_object_no_sync(tensors[i], &object) != 0) {
      if (tensors[i]->deleter != nullptr) tensors[i]->deleter(tensors[i]);
      ok = false;
    } else if (as_list) {
      py.list_set(result, static_cast<intptr_t>(i), object);
    } else {
      result = object;
    }
  }
  TVMFFIAny opaque;
  opaque.type_index = kTVMFFIOpaquePyObject;
  opaque.zero_padding = 0;
  TVMFFIObjectHandle handle = nullptr;
  if (ok) ok = TVMFFIObjectCreateOpaque(result, kTVMFFIOpaquePyObject, DeleteOpaque, &handle) == 0;
  if (!ok) {
    if (py.error_occurred()) py.error_clear();
    if (result != nullptr) py.dec_ref(result);
    Fail("RuntimeError", "torch could not take over an output tensor");
  }
  opaque.v_obj = static_cast<TVMFFIObject*>(handle);
  return ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&opaque);
}

}  // namespace runtime
}  // namespace tilelang
