# cython: language_level=3, boundscheck=False, wraparound=False
"""The call path of kernels, shared by the execution backends.

A :class:`KernelLauncher` hands torch tensors to a native launcher as borrowed views: nothing is
allocated per argument, which is what a tvm-ffi call spends most of its time on. Everything it does
not know (other array types, huge integers) takes the tvm-ffi call instead, so both
ways accept the same arguments and raise the same errors.
"""

import gc

import torch

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1
    double PyFloat_AsDouble(object value) except? -1
    void* PyCapsule_GetPointer(object capsule, const char* name) except NULL
    void PyErr_Clear()
    ctypedef struct PyTypeObject:
        pass

    void PyType_Modified(PyTypeObject* kind)
    void Py_DecRef(PyObject* obj)

cdef extern from "dlpack/dlpack.h":
    ctypedef struct DLDevice:
        int device_type
        int32_t device_id

    ctypedef struct DLTensor:
        DLDevice device

    ctypedef struct DLManagedTensorVersioned:
        pass

    ctypedef int (*DLPackManagedTensorAllocator)(
        DLTensor*, DLManagedTensorVersioned**, void*, void*) noexcept

    ctypedef struct DLPackExchangeAPI:
        DLPackManagedTensorAllocator managed_tensor_allocator
        int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned*, void**) noexcept
        int (*dltensor_from_py_object_no_sync)(void*, DLTensor*) noexcept
        int (*current_work_stream)(int, int32_t, void**) noexcept

    int kDLCPU

cdef extern from "tvm/ffi/extra/c_env_api.h":
    ctypedef struct TVMFFIObject:
        pass

    ctypedef struct TVMFFIAny:
        int32_t type_index
        uint32_t zero_padding
        int64_t v_int64
        double v_float64
        void* v_ptr
        TVMFFIObject* v_obj

    ctypedef int (*TVMFFISafeCallType)(
        void*, const TVMFFIAny*, int32_t, TVMFFIAny*) noexcept nogil

    ctypedef struct TVMFFIFunctionCell:
        TVMFFISafeCallType safe_call

    ctypedef struct TVMFFIOpaqueObjectCell:
        void* handle

    int kTVMFFINone
    int kTVMFFIInt
    int kTVMFFIBool
    int kTVMFFIFloat
    int kTVMFFIDLTensorPtr
    int kTVMFFITensor
    int kTVMFFIOpaquePyObject
    int kTVMFFIStaticObjectBegin

    TVMFFIFunctionCell* TVMFFIFunctionGetCellPtr(void* handle)
    TVMFFIOpaqueObjectCell* TVMFFIOpaqueObjectGetCellPtr(void* handle)
    int TVMFFIObjectDecRef(void* handle)
    int TVMFFITensorToDLPackVersioned(void* tensor, DLManagedTensorVersioned** out)
    int TVMFFIEnvSetDLPackManagedTensorAllocator(
        DLPackManagedTensorAllocator allocator, int globally,
        DLPackManagedTensorAllocator* previous)
    int TVMFFIEnvSetStream(int32_t type, int32_t id, void* stream, void** previous)
    void* TVMFFIEnvGetStream(int32_t type, int32_t id)

cdef extern from *:
    """
    /* A Python exception is set already; returning -1 makes Cython raise it. */
    static int tilelang_propagate(void) { return -1; }
    """
    int propagate_exception "tilelang_propagate" () except -1

DEF MAX_ARGS = 32

cdef int _PYTHON_ERROR_IS_SET = -2


cdef class KernelLauncher:
    """Calls a native launcher with little overhead.

    Parameters
    ----------
    function : tvm_ffi.Function
        A native launcher.
    plan : LaunchPlan
        How it is called; used in messages.

    Notes
    -----
    The call takes positional arguments only, like ``function`` itself.
    """

    cdef readonly object function
    cdef readonly object plan
    cdef object _raise_pending
    cdef object _tensor_type
    cdef object _parameter_type
    cdef void* _handle
    cdef TVMFFISafeCallType _call
    cdef const DLPackExchangeAPI* _torch
    cdef bint _allocates

    def __init__(self, function, plan):
        import tvm_ffi

        self.function = function
        self.plan = plan
        self._raise_pending = tvm_ffi.get_global_func("tl.runtime.raise_pending")
        self._tensor_type = torch.Tensor
        self._parameter_type = torch.nn.Parameter
        self._allocates = bool(plan.workspaces) or len(plan.inputs()) < len(plan.params)
        self._handle = <void*><uint64_t>function.__chandle__()
        self._call = TVMFFIFunctionGetCellPtr(self._handle).safe_call
        capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
        self._torch = NULL
        if capsule is not None:
            self._torch = <const DLPackExchangeAPI*>PyCapsule_GetPointer(
                capsule, b"dlpack_exchange_api")

    def __call__(self, *args):
        return self.call(args)

    cdef object call(self, tuple args):
        """Launch with the arguments in ``args``."""
        cdef TVMFFIAny packed[MAX_ARGS]
        cdef DLTensor tensors[MAX_ARGS]
        cdef TVMFFIAny result
        cdef DLPackManagedTensorAllocator previous = NULL
        cdef int32_t count = <int32_t>len(args)
        cdef int32_t i
        cdef int code
        cdef DLDevice device
        cdef void* stream = NULL
        cdef void* previous_stream = NULL
        device.device_type = kDLCPU
        device.device_id = 0
        if self._torch == NULL or count > MAX_ARGS:
            return self.function(*args)
        for i in range(count):
            if not self._pack(args[i], i, &packed[i], &tensors[i], &device):
                return self.function(*args)
        result.type_index = kTVMFFINone
        result.zero_padding = 0
        result.v_int64 = 0
        if device.device_type != kDLCPU:
            # Kernels run on the stream that torch uses on the device of the tensors.
            if self._torch.current_work_stream(
                    device.device_type, device.device_id, &stream) != 0:
                propagate_exception()
            previous_stream = TVMFFIEnvGetStream(device.device_type, device.device_id)
            if stream != previous_stream:
                TVMFFIEnvSetStream(device.device_type, device.device_id, stream, NULL)
        if self._allocates:
            TVMFFIEnvSetDLPackManagedTensorAllocator(
                self._torch.managed_tensor_allocator, 0, &previous)
        with nogil:
            code = self._call(self._handle, packed, count, &result)
        if stream != previous_stream:
            TVMFFIEnvSetStream(device.device_type, device.device_id, previous_stream, NULL)
        if self._allocates:
            TVMFFIEnvSetDLPackManagedTensorAllocator(previous, 0, NULL)
        if code == _PYTHON_ERROR_IS_SET:
            propagate_exception()
        if code != 0:
            self._raise_pending()
        if result.type_index == kTVMFFINone:
            return None
        return self._unpack(result)

    cdef bint _pack(self, object arg, int position, TVMFFIAny* out, DLTensor* tensor,
                    DLDevice* device) except -1:
        """Describe one argument; False if only the tvm-ffi call knows how.

        ``device`` becomes that of the first tensor outside of host memory.
        """
        cdef int overflow = 0
        cdef object kind = type(arg)
        out.zero_padding = 0
        if kind is self._tensor_type or kind is self._parameter_type:
            if self._torch.dltensor_from_py_object_no_sync(<void*>arg, tensor) != 0:
                PyErr_Clear()
                self._refuse_tensor(arg, position)
            out.type_index = kTVMFFIDLTensorPtr
            out.v_ptr = tensor
            if device.device_type == kDLCPU:
                device[0] = tensor.device
            return True
        if kind is int:
            out.type_index = kTVMFFIInt
            out.v_int64 = PyLong_AsLongLongAndOverflow(arg, &overflow)
            return overflow == 0
        if kind is float:
            out.type_index = kTVMFFIFloat
            out.v_float64 = PyFloat_AsDouble(arg)
            return True
        if kind is bool:
            out.type_index = kTVMFFIBool
            out.v_int64 = 1 if arg else 0
            return True
        if arg is None:
            out.type_index = kTVMFFINone
            out.v_int64 = 0
            return True
        return False

    cdef int _refuse_tensor(self, object tensor, int position) except -1:
        """Say which tensor has no memory a kernel could use: sparse, meta, functional."""
        from tilelang.errors import ArgumentTypeError

        inputs = self.plan.inputs()
        name = f"'{inputs[position].name}' " if position < len(inputs) else ""
        raise ArgumentTypeError(
            f"{self.plan.name}: argument {name}(position {position}): expected a dense tensor in "
            f"memory, got layout {tensor.layout} on device {tensor.device}")

    cdef object _unpack(self, TVMFFIAny result):
        """Turn a returned tensor, or wrapped Python object, into a Python object."""
        cdef DLManagedTensorVersioned* managed = NULL
        cdef void* obj = NULL
        cdef object out
        cdef int code
        if result.type_index == kTVMFFIOpaquePyObject:
            out = <object><PyObject*>TVMFFIOpaqueObjectGetCellPtr(result.v_obj).handle
            TVMFFIObjectDecRef(result.v_obj)
            return out
        if result.type_index != kTVMFFITensor:
            if result.type_index >= kTVMFFIStaticObjectBegin:
                TVMFFIObjectDecRef(result.v_obj)
            raise RuntimeError(f"unexpected result of FFI type {result.type_index}")
        code = TVMFFITensorToDLPackVersioned(result.v_obj, &managed)
        TVMFFIObjectDecRef(result.v_obj)
        if code != 0:
            self._raise_pending()
        if self._torch.managed_tensor_to_py_object_no_sync(managed, &obj) != 0:
            propagate_exception()
        out = <object><PyObject*>obj
        # The conversion made a new reference, and Cython took another one.
        Py_DecRef(<PyObject*>obj)
        return out


@cython.auto_pickle(False)
cdef class KernelCall:
    """Base of a kernel: its call, without a Python frame for calls that go as usual.

    ``_launch`` is the native callable. Keyword arguments, tracing and failures are left to the
    methods ``_call(*args, **kwargs)`` and ``_recover(error, args)`` of the subclass.
    """

    cdef public object _launch

    def __call__(self, *args, **kwargs):
        cdef object launch = self._launch
        if kwargs or type(launch) is not KernelLauncher or _is_compiling():
            return self._call(*args, **kwargs)
        try:
            return (<KernelLauncher>launch).call(args)
        except (TypeError, RuntimeError) as error:
            failure = error
        return self._recover(failure, args)


cdef dict _compiler_state = torch.compiler.__dict__


cdef bint _is_compiling() except -1:
    """``torch.compiler.is_compiling()``, which outside of Dynamo only reads a variable."""
    flag = _compiler_state.get("_is_compiling_flag")
    return torch.compiler.is_compiling() if flag is None else flag


def show_call(kind, function):
    """Let ``kind.__call__`` read as ``function``; instances are called as before.

    Dynamo follows the function that it finds there, and cannot follow native code. Setting the
    attribute would make Python call the function as well.
    """
    (attributes,) = (item for item in gc.get_referents(kind.__dict__) if type(item) is dict)
    attributes["__call__"] = function
    PyType_Modified(<PyTypeObject*>kind)


def load_launcher(path, plan):
    """Load compiled C kernels and make their launcher.

    Parameters
    ----------
    path : str or path
        A shared library that exports ``__tvm_ffi_<entry>`` for every kernel of the plan.
    plan : LaunchPlan
        How the function is called.

    Returns
    -------
    KernelLauncher
    """
    import tvm_ffi

    from tilelang._native import make_cpu_launcher

    module = tvm_ffi.load_module(str(path))
    workers = [module[kernel.entry] for kernel in plan.kernels]
    return KernelLauncher(make_cpu_launcher(plan, workers), plan)
