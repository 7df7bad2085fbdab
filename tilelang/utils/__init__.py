"""Helpers around the language: comparing tensors, asking buffers, marking old spellings."""

from tilelang.utils.deprecated import deprecated, deprecated_warning
from tilelang.utils.device import get_available_cpu_count, get_current_device
from tilelang.utils.language import (
    array_reduce,
    get_prim_func_name,
    is_fragment,
    is_full_region,
    is_global,
    is_local,
    is_local_var,
    is_shared,
    is_shared_dynamic,
    is_tensor_memory,
    retrieve_shape,
    retrieve_stride,
    retrive_ptr_from_buffer_region,
    side_effect,
    to_buffer_region,
)
from tilelang.utils.tensor import TensorSupplyType, torch_assert_close
from tilelang.utils.version import build_date

__all__ = [
    "TensorSupplyType",
    "array_reduce",
    "build_date",
    "deprecated",
    "deprecated_warning",
    "get_available_cpu_count",
    "get_current_device",
    "get_prim_func_name",
    "is_fragment",
    "is_full_region",
    "is_global",
    "is_local",
    "is_local_var",
    "is_shared",
    "is_shared_dynamic",
    "is_tensor_memory",
    "retrieve_shape",
    "retrieve_stride",
    "retrive_ptr_from_buffer_region",
    "side_effect",
    "to_buffer_region",
    "torch_assert_close",
]
