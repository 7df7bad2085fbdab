"""Narrow types become the integers that hold their bits, in buffers, variables and expressions.

A bfloat16 is a uint16, an 8- or 6-bit float a uint8, an int4 value an int8. In memory two 4-bit
elements share a byte, the first one in the low bits; a vector of them, such as a float4_e2m1fnx2,
is moved as whole bytes. Copies move bits; conversions to and from float32 (int32 for 4-bit
integers) become ``decode`` and ``encode`` operators. float16 stays: LLVM and C compilers convert
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm.tirx import _ffi_api
from tvm_ffi import structural_mutate, structural_walk

from tilelang.cpu.intrinsics.math import ops
from tilelang.cpu.intrinsics.math.minifloat import storage_dtype
from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.errors import UnsupportedError
from tilelang.ir.dtype import dtype
from tilelang.transform.numerics.dtypes import (
    element,
    is_plain_index,
    is_sub_byte_int,
    lanes_of_type,
    packs,
    retyped,
)

__all__ = ["legalize_storage"]


def legalize_storage(func: T.PrimFunc, *, native_half: bool = True) -> T.PrimFunc:
    """Re-type narrow buffers and values to integers.

    Expects arithmetic and conversions in the form that :func:`promote_narrow` and
    :func:`legalize_conversions` leave. Without ``native_half``, float16 is stored as uint16 and
    converted by integer formulas too.

    Raises
    ------
    UnsupportedError
        For a 4-bit buffer with strides, whose elements need not share bytes, and for arithmetic on
        vectors of 4-bit elements.

    Before: ``B[i] = bfloat16(float32(A[i]) * 2.0)``. After, with uint16 buffers: ``B[i] =
    tl.num.encode.bfloat16(tl.num.decode.bfloat16(A[i]) * 2.0)``.
    """
    rewriter = _Rewriter(native_half)
    if not rewriter.concerns(func):
        return func
    changed = rewriter.rewrite(func)
    # The constructor derives the function's type from the new parameters.
    return T.PrimFunc(changed.params, changed.body, changed.ret_type, changed.attrs, changed.span)


class _Rewriter:
    def __init__(self, native_half: bool) -> None:
        self.native = {"float16"} if native_half else set()
        self.variables: dict[ir.Var, ir.Var] = {}
        self.packed_stores = 0

    def held_in(self, name: str) -> str | None:
        """The integer dtype that holds values of dtype ``name``, None if it stays."""
        if is_sub_byte_int(name):
            return "uint8" if name.startswith("u") else "int8"
        return None if name in self.native else storage_dtype(name)

    def concerns(self, func: T.PrimFunc) -> bool:
        """Whether a type of the function changes."""
        found: list[Any] = []

        def on_type(ty: ir.PrimType) -> None:
            if self.held_in(_name(ty)) is not None:
                found.append(ty)

        def on_expr(expr: ir.Expr) -> None:
            if isinstance(expr.ty, ir.PrimType):
                on_type(expr.ty)

        for param in func.params:
            on_expr(param)
        # Types of buffers are visited; those of other expressions are not.
        handlers = [(ir.PrimType, on_type), (prim.Cast, on_expr), (ir.Call, on_expr)]
        structural_walk(func, handlers)
        return bool(found)

    def rewrite(self, func: T.PrimFunc) -> Any:
        handlers: list[tuple[type, Callable[..., Any]]] = [
            (T.BufferType, self.on_buffer_type),
            (ir.PrimType, self.on_type),
            (ir.Var, self.on_var),
            (ir.TensorLoad, self.on_load),
            (T.BufferStore, self.on_store),
            (T.For, self.on_for),
            (prim.FloatImm, self.on_float),
            (prim.IntImm, self.on_int),
            (prim.Cast, self.on_cast),
            (prim.Select, self.on_select),
            (prim.Let, self.on_let),
            (prim.Broadcast, self.on_broadcast),
            (prim.Shuffle, self.on_shuffle),
            (ir.Call, self.on_call),
        ]
        return structural_mutate(func, handlers)

    # --- types and variables ---------------------------------------------------------------

    def on_type(self, ty: ir.PrimType, _: Any = None) -> ir.PrimType:
        held = self.held_in(_name(ty))
        if held is None:
            return ty
        return _bytes_of(ty) if _is_packed_vector(ty) else retyped(ty, held)

    def on_buffer_type(self, ty: Any, mutator: Any) -> Any:
        name = _name_of(ty.dtype)
        if not packs(name) or _is_packed_vector(ty.dtype):
            return mutator.default_mutate(ty)
        if list(ty.strides):
            raise UnsupportedError(
                f"{name} buffers with strides are not supported on the CPU; make them contiguous",
                None,
            )
        *outer, last = ty.shape
        half = last.value + 1 >> 1 if isinstance(last, prim.IntImm) else T.floordiv(last + 1, 2)
        offset = T.floordiv(ty.elem_offset, 2)
        return _ffi_api.BufferType(
            ty.storage_scope, "uint8", [*outer, half], [], offset,
            ty.data_alignment, ty.offset_factor, ty.layout, (), None,
        )  # fmt: skip

    def on_var(self, var: ir.Var, mutator: Any) -> Any:
        if not isinstance(var.ty, ir.PrimType):
            return mutator.default_mutate(var)
        ty = self.on_type(var.ty)
        if ty.same_as(var.ty):
            return var
        return self.variables.setdefault(var, T.Var(var.name, ty, var.span))

    # --- memory ----------------------------------------------------------------------------

    def on_indices(self, indices: Any, mutator: Any) -> list[Any]:
        return [index if is_plain_index(index) else mutator.mutate(index) for index in indices]

    def on_load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        name = element(load)
        source = mutator.mutate(load.source)
        indices = self.on_indices(load.indices, mutator)
        if not packs(name) or _is_packed_vector(load.source.ty.dtype):
            return T.BufferLoad(source, indices, load.span)
        byte, index = self._byte(source, indices, load.span)
        code = ops.call("nibble.get", "int32", byte, index, span=load.span)
        if is_sub_byte_int(name):
            return ops.call(f"wrap.{name}", self.held_in(name) or "", code, span=load.span)
        return prim.Cast(retyped(load.ty, "uint8"), code, load.span)

    def _byte(self, buffer: Any, indices: list[Any], span: Any) -> tuple[ir.TensorLoad, ir.Expr]:
        *outer, last = indices
        return T.BufferLoad(buffer, [*outer, T.floordiv(last, 2)], span), last

    def on_store(self, store: T.BufferStore, mutator: Any) -> Any:
        name = _name_of(store.buffer.ty.dtype)
        buffer, value = mutator.mutate(store.buffer), mutator.mutate(store.value)
        indices = self.on_indices(store.indices, mutator)
        if not packs(name) or _is_packed_vector(store.buffer.ty.dtype):
            return T.BufferStore(buffer, value, indices, store.span)
        self.packed_stores += 1
        byte, index = self._byte(buffer, indices, store.span)
        wide = prim.Cast(retyped(value.ty, "int32"), value)
        changed = ops.call("nibble.set", "uint8", byte, index, wide, span=store.span)
        return T.BufferStore(byte.source, changed, list(byte.indices), store.span)

    def on_for(self, loop: T.For, mutator: Any) -> Any:
        """Neighbours in a packed byte must not be written at once: such loops run in order."""
        before = self.packed_stores
        changed = mutator.default_mutate(loop)
        if self.packed_stores == before or loop.kind not in (
            T.ForKind.VECTORIZED,
            T.ForKind.PARALLEL,
        ):
            return changed
        return T.For(
            changed.loop_var, changed.min, changed.extent, T.ForKind.SERIAL, changed.body, None,
            changed.annotations, changed.step, changed.span,
        )  # fmt: skip

    # --- expressions -----------------------------------------------------------------------

    def on_float(self, node: prim.FloatImm, _: Any) -> ir.Expr:
        name = element(node)
        held = self.held_in(name)
        if held is None:
            return node
        code = np.asarray(np.float64(node.value).astype(np.float32)).astype(dtype(name).as_numpy())
        return prim.IntImm(prim_type(held), int(code.view(held)), node.span)

    def on_int(self, node: prim.IntImm, _: Any) -> ir.Expr:
        held = self.held_in(element(node))
        return node if held is None else prim.IntImm(prim_type(held), node.value, node.span)

    def on_cast(self, node: Any, mutator: Any) -> Any:
        value = mutator.mutate(node.value)
        source, target = element(node.value), element(node)
        for ty in (node.ty, node.value.ty):
            if _is_packed_vector(ty):
                raise UnsupportedError(
                    f"values of dtype {ty.dtype} can only be moved on the CPU; convert elements",
                    node.span,
                )
        if self.held_in(target) is not None:
            kind = "wrap" if is_sub_byte_int(target) else "encode"
            return ops.call(f"{kind}.{target}", self.held_in(target) or "", value, span=node.span)
        if self.held_in(source) is not None and not is_sub_byte_int(source):
            return ops.call(f"decode.{source}", "float32", value, span=node.span)
        return node if value.same_as(node.value) else prim.Cast(node.ty, value, node.span)

    def on_select(self, node: prim.Select, mutator: Any) -> Any:
        parts = [
            mutator.mutate(part) for part in (node.condition, node.true_value, node.false_value)
        ]
        return prim.Select(*parts, node.span)

    def on_let(self, node: prim.Let, mutator: Any) -> Any:
        value = mutator.mutate(node.value)
        return prim.Let(mutator.mutate(node.var), value, mutator.mutate(node.body), node.span)

    def on_broadcast(self, node: prim.Broadcast, mutator: Any) -> Any:
        return prim.Broadcast(mutator.mutate(node.value), node.lanes, node.span)

    def on_shuffle(self, node: prim.Shuffle, mutator: Any) -> Any:
        return prim.Shuffle(
            [mutator.mutate(v) for v in node.vectors], list(node.indices), node.span
        )

    def on_call(self, call: ir.Call, mutator: Any) -> Any:
        name = ops.operator_name(call)
        if name is not None and name.startswith("round.float16") and self.native:
            return mutator.default_mutate(call)
        args = [mutator.mutate(arg) for arg in call.args]
        ty = mutator.mutate(call.ty)
        same = all(new.same_as(old) for new, old in zip(args, call.args, strict=True))
        if same and ty.same_as(call.ty):
            return call
        if _is_reinterpret(call) and args[0].ty == ty:
            return args[0]
        return ir.Call(call.op, args, attrs=call.attrs, span=call.span, ret_ty=ty)


def _is_reinterpret(call: ir.Call) -> bool:
    return isinstance(call.op, ir.Op) and call.op.name == "tirx.reinterpret"


def _name_of(kind: Any) -> str:
    text = str(kind)
    head, separator, lanes = text.rpartition("x")
    return head if separator and lanes.isdigit() else text


def _name(ty: ir.PrimType) -> str:
    return _name_of(ty.dtype)


def _is_packed_vector(ty: ir.PrimType) -> bool:
    """Whether a value of this type fills whole bytes with several elements each."""
    return packs(_name(ty)) and lanes_of_type(ty) > 1


def _bytes_of(ty: ir.PrimType) -> ir.PrimType:
    return prim_type("uint8", lanes_of_type(ty) // 2)
