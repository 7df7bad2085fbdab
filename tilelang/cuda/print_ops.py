"""Operations of thread programs as calls: copies, matrix instructions, atomics, output, random."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.cuda.print_expr import CudaExpressions
from tilelang.errors import CodegenError
from tilelang.ir.dtype import dtype
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op.atomic import ELEMENT_ATOMIC

__all__ = ["CudaOperations"]

_ATOM, _UNARY = 13, 12
_DIMS = "xyz"


class CudaOperations(CudaExpressions):
    """Prints the calls that are operations of the hardware rather than arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: dict[str, Callable[[ir.Call], tuple[str, int]]] = {
            "tl.vec_copy": lambda c: self._sized("vec_copy", c.args[2], c.args[:2]),
            "tl.vec_zero": lambda c: self._sized("vec_zero", c.args[1], c.args[:1]),
            "tl.cp_async": self._cp_async,
            "tl.cp_async_wait": lambda c: self._sized("cp_async_wait", c.args[0], []),
            "tl.ptx_wait_group": lambda c: self._sized("cp_async_wait", c.args[0], []),
            "tl.ptx_cp_async": self._ptx_cp_async,
            **{
                f"tl.ld{space}{32 * n}": partial(self._words, "load_words", n)
                for space in "gs"
                for n in (1, 2, 4, 8)
            },
            **{
                f"tl.st{space}{32 * n}": partial(self._words, "store_words", n)
                for space in "gs"
                for n in (1, 2, 4, 8)
            },
            "tl.ldmatrix": self._ldmatrix,
            "tl.mma": self._mma,
            "tl.mma_sp": self._sparse_mma,
            "tl.atomic_add_vec": lambda c: self._sized("atomic_add_vec", c.args[2], c.args[:2]),
            "tirx.dp4a": lambda c: self.call("dp4a", *(self.expr(arg) for arg in c.args)),
            "tl.sync_threads": self._sync_threads,
            "tl.set_max_nreg": self._register_budget,
            "tl.shared_arena": self._arena,
            "tl.block_thread": lambda _: self._block_thread(),
            "tl.print": self._print,
            "tl.print_element": self._print_element,
            "tl.device_assert": self._device_assert,
            "tl.cast_stochastic": self._cast_stochastic,
            "tl.rng_init": self._rng_init,
            "tl.rng_rand": lambda _: self._rng("uint32", "unsigned"),
            "tl.rng_rand_float": lambda c: self._rng(str(c.args[0].value), self.type(dtype_of(c))),
            "tirx.assume": lambda c: (f"__builtin_assume({self.expr(c.args[0])})", _ATOM),
            ELEMENT_ATOMIC.name: self._atomic,
        }

    def special_call(self, name: str, node: ir.Call) -> tuple[str, int] | None:
        """Operations first, then what is arithmetic."""
        operation = self._operations.get(name)
        return operation(node) if operation is not None else super().special_call(name, node)

    def _sized(self, name: str, size: Any, args: Any) -> tuple[str, int]:
        values = ", ".join(self.expr(arg) for arg in args)
        return f"{self.use(name)}<{_constant(size)}>({values})", _ATOM

    def _cp_async(self, node: ir.Call) -> tuple[str, int]:
        dst, src, size, predicate = node.args
        args = [dst, src] if const_int(predicate) == 1 else [dst, src, predicate]
        return self._sized("cp_async", size, args)

    def _ptx_cp_async(self, node: ir.Call) -> tuple[str, int]:
        """Its size counts elements of the destination."""
        dst, src, count, *predicate = node.args
        element = dst.args[0]
        kind = dtype_of(element.source if isinstance(element, ir.TensorLoad) else element)
        size = T.IntImm("int32", _constant(count) * dtype(kind).itemsize)
        return self._sized("cp_async", size, [dst, src, *predicate])

    def _words(self, name: str, count: int, node: ir.Call) -> tuple[str, int]:
        return self._sized(name, T.IntImm("int32", count), node.args)

    def _ldmatrix(self, node: ir.Call) -> tuple[str, int]:
        dst, src, number, transposed = node.args
        form = f"ldmatrix_x{_constant(number)}"
        flag = "true" if _constant(transposed) else "false"
        return f"{self.use(form)}<{flag}>({self.expr(dst)}, {self.expr(src)})", _ATOM

    def _mma(self, node: ir.Call) -> tuple[str, int]:
        row, *operands = node.args
        return self.call(f"mma_{row.value}", *(self.expr(operand) for operand in operands))

    def _sparse_mma(self, node: ir.Call) -> tuple[str, int]:
        row, *operands, selector = node.args
        name = self.use(f"mma_sp_{row.value}")
        values = ", ".join(self.expr(operand) for operand in operands)
        return f"{name}<{_constant(selector)}>({values})", _ATOM

    def _sync_threads(self, node: ir.Call) -> tuple[str, int]:
        name = "named_barrier_sync" if node.args else "sync_threads"
        return self.call(name, *(self.expr(arg) for arg in node.args))

    def _register_budget(self, node: ir.Call) -> tuple[str, int]:
        count, grows = node.args
        return self._sized("inc_max_nreg" if _constant(grows) else "dec_max_nreg", count, [])

    def _arena(self, node: ir.Call) -> tuple[str, int]:
        offset = _constant(node.args[0])
        return (f"tl_smem + {offset}", 10) if offset else ("tl_smem", _ATOM)

    def _block_thread(self) -> tuple[str, int]:
        """The number of the thread, x fastest, over the dimensions the block has."""
        terms, stride = [], 1
        for dim, size in zip(_DIMS, self.block, strict=True):
            if size > 1 or (dim == "x" and math.prod(self.block) == 1):
                terms.append(f"threadIdx.{dim}" + (f" * {stride}" if stride > 1 else ""))
            stride *= size
        return f"int({' + '.join(terms)})", _ATOM

    def _atomic(self, node: ir.Call) -> tuple[str, int]:
        attrs, target = node.attrs, node.args[0]
        if dtype_of(target.source) in ("int4", "uint4", "float4_e2m1fn"):
            raise CodegenError(
                f"atomics on {dtype_of(target.source)} are not available; use a wider type",
                node.span,
            )
        name = self.use(f"atomic_{attrs.kind}")
        order = "" if attrs.order == "relaxed" else f"<tl::{attrs.order}>"
        args = [self.address(target)[0], *(self.expr(arg) for arg in node.args[1:])]
        return f"{name}{order}({', '.join(args)})", _ATOM

    def _print(self, node: ir.Call) -> tuple[str, int]:
        message, *rest = node.args
        args = [self.text(message), *(self.expr(arg) for arg in rest[:1])]
        return self.call("print", *args)

    def _print_element(self, node: ir.Call) -> tuple[str, int]:
        message, buffer, index, value = node.args
        return self.call(
            "print_element", self.text(message), self.text(buffer), self.expr(index),
            self.expr(value),
        )  # fmt: skip

    def _device_assert(self, node: ir.Call) -> tuple[str, int]:
        condition, message = node.args  # which says where it stands
        return self.call("device_assert", self.expr(condition), self.text(message), '""')

    def _place(self, node: Any) -> str:
        """``file:line`` of a node as a literal."""
        if node.span is None:
            return '""'
        place = f"{node.span.source_name.name}:{int(node.span.line)}"
        return self.text(ir.StringImm(place))

    def _cast_stochastic(self, node: ir.Call) -> tuple[str, int]:
        value, noise = (self.expr(arg) for arg in node.args)
        kind = self.type(dtype_of(node))
        return f"{self.use('cast_stochastic')}<{kind}>({value}, {noise})", _ATOM

    # --- random numbers -------------------------------------------------------------------

    def _rng_init(self, node: ir.Call) -> tuple[str, int]:
        seed, sequence, offset = node.args[:3]
        self.use("rng_state")
        place = isinstance(sequence, ir.StringImm)  # the default: the number of the thread
        number = "tl::global_thread()" if place else self.expr(sequence)
        return f"tl_rng.start({self.expr(seed)}, {number}, {self.expr(offset)})", _ATOM

    def _rng(self, form: str, kind: str) -> tuple[str, int]:
        self.use("rng_state")
        return f"tl_rng.{form}<{kind}>()" if form != "uint32" else "tl_rng.next()", _ATOM


def _constant(node: Any) -> int:
    value = const_int(node)
    assert value is not None, f"{node} must be a constant"
    return value
