"""CUDA source of thread programs: the printer of kernels, and the code generation of the backend.

A thread program is a flat function: block and thread indices are the outermost loops, global
buffers are one-dimensional parameters, shared memory is cut out of one dynamic array::

    extern "C" __global__ void __launch_bounds__(128)
    scale(const float* __restrict__ A, float* __restrict__ B) {
      const int bx = blockIdx.x;
      const int tx = threadIdx.x;

      B[bx * 128 + tx] = A[bx * 128 + tx] * 2.0f;
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm.ir import IRModule
from tvm.target import Target
from tvm_ffi import structural_equal, structural_walk

from tilelang.backend.source_callback import edit_source
from tilelang.codegen.names import Names
from tilelang.cuda.access import (
    foreign_source,
    imported_sources,
    operations,
    used_variables,
    written_buffers,
)
from tilelang.cuda.print_ops import CudaOperations
from tilelang.cuda.print_types import SUB_BYTE
from tilelang.errors import CodegenError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.transform.pass_config import PassConfigKey, pass_option
from tilelang.transform.pass_context import get_pass_context

__all__ = ["CUDAModule", "CudaPrinter", "build_cuda"]

_DECLARATIONS = (T.Bind, T.AllocBuffer, T.DeclBuffer)
_BLOCKS = (T.For, T.While, T.IfThenElse)
_SMEM = "tl_smem"


class CudaPrinter(CudaOperations):
    """Prints kernels.

    Parameters
    ----------
    line_directives : bool
        Write ``#line`` directives that lead to the user's source.
    """

    def __init__(self, line_directives: bool = False) -> None:
        super().__init__()
        self._line_directives = line_directives
        self._place_shown: tuple[str, int] | None = None
        self._in_head = True  # among the declarations a kernel begins with
        self._used: set[ir.Var] = set()
        self._written: set[ir.Var] = set()
        self._may_alias: set[ir.Var] = set()
        self._stmt_rules[T.AssertStmt] = self._assert
        self._stmt_rules[T.Return] = lambda _: self.line("return;")  # a kernel has no result

    # --- functions ------------------------------------------------------------------------

    def module(self, functions: Mapping[str, T.PrimFunc]) -> str:
        """Headers, imported source, then the kernels."""
        self._lines, self.headers = [], set()
        imported: dict[str, None] = {}
        for name, func in functions.items():
            imported.update(dict.fromkeys(imported_sources(func)))
            written = foreign_source(func)
            if written is None:
                self.function(name, func)
            else:  # of the same text, another kernel may have been launched
                imported[written] = None
        includes = [f"#include <tl/{header}.h>" for header in sorted(self.headers)]
        foreign = [line for text in imported for line in ("", text.strip("\n"))]
        return "\n".join([*includes, *foreign, *self._lines]).lstrip("\n") + "\n"

    def function(self, name: str, func: T.PrimFunc) -> None:
        """Print one kernel."""
        attrs = func.attrs or {}
        self._names = Names([*self._reserved, name])
        self._used, self._written = used_variables(func), written_buffers(func)
        self._may_alias = _overlapping(func)
        self._place_shown, self._in_head = None, True
        self.block = _block(attrs)
        self.analyzer = sym.Analyzer()
        self._assume_sizes(func)
        params = [self.parameter(param, func) for param in func.params]
        self.line("")
        self.line(f"{self.dialect.function_prefix}void {self._launch_bounds(attrs)}")
        self._signature(name, params)
        self._depth += 1
        for line in self._prologue(func):
            self.line(line)
        self.stmt(func.body)
        self._depth -= 1
        self.line("}")

    def _signature(self, name: str, params: list[str]) -> None:
        line = f"{name}({', '.join(params)}) {{"
        if len(line) <= 100:
            self.line(line)
            return
        self.line(f"{name}(")
        for position, param in enumerate(params):
            self.line(f"    {param}{',' if position + 1 < len(params) else ') {'}")

    def _launch_bounds(self, attrs: Any) -> str:
        x, y, z = self.block
        blocks = const_int(attrs.get("tl.min_blocks")) if "tl.min_blocks" in attrs else None
        return f"__launch_bounds__({x * y * z}{f', {blocks}' if blocks else ''})"

    def _prologue(self, func: T.PrimFunc) -> list[str]:
        """What a kernel declares before its body."""
        found = operations(func)
        lines = []
        if "tl.shared_arena" in found:
            lines.append(f"extern __shared__ __align__(1024) unsigned char {_SMEM}[];")
        if "tl.rng_init" in found:
            lines.append(f"{self.use('rng_state')} tl_rng;")
        return lines

    def _assume_sizes(self, func: T.PrimFunc) -> None:
        """Scalars in the shape of a parameter are sizes, so not negative."""

        def on_var(var: ir.Var) -> None:
            if isinstance(var.ty, ir.PrimType):
                self._bind_range(var, 0, None)

        for param in func.params:
            if isinstance(param.ty, T.BufferType):
                for extent in param.ty.shape:
                    structural_walk(extent, (ir.Var, on_var))

    def _bind_range(self, var: ir.Var, low: int, extent: int | None) -> None:
        bits = 63 if dtype_of(var).endswith("64") else 31
        high = 2**bits - 1 if extent is None else max(low, low + extent - 1)
        self.analyzer.update(var, sym.ConstIntBound(low, high), True)

    def parameter(self, param: ir.Var, func: T.PrimFunc) -> str:
        """A global buffer as a pointer, a scalar as itself."""
        name = self._names.of(param)
        if isinstance(param.ty, T.BufferType):
            const = "" if param in self._written else "const "
            alone = "" if param in self._may_alias else f" {self.dialect.restrict}"
            return f"{const}{self.storage_type(param)}*{alone} {name}"
        if isinstance(param.ty, ir.PointerType):
            return f"{self.pointer_type(param.ty)} {name}"
        return f"const {self.type(dtype_of(param))} {name}"

    # --- statements -----------------------------------------------------------------------

    def stmt(self, node: Any) -> None:
        """Print a statement behind the line of the user it comes from."""
        if self._line_directives and not isinstance(node, (T.SeqStmt, T.AttrStmt)):
            self._line_directive(node)
        super().stmt(node)

    def _line_directive(self, node: Any) -> None:
        span = node.span
        if span is None or int(span.line) <= 0:
            return
        place = str(span.source_name.name), int(span.line)
        if place != self._place_shown:
            self._lines.append(f'#line {place[1]} "{place[0]}"')
            self._place_shown = place

    def _seq(self, node: T.SeqStmt) -> None:
        """An empty line ends the declarations of a kernel, and parts long blocks from the rest."""
        previous: str | None = None
        for child in node.seq:
            start = len(self._lines)
            self.stmt(child)
            length = len(self._lines) - start
            if length == 0:
                continue
            kind = _kind(child, length)
            head_ends = self._in_head and kind != "declaration"
            if previous is not None and (head_ends or "block" in (kind, previous)):
                self._lines.insert(start, "")
            self._in_head = self._in_head and not head_ends
            previous = kind

    def _for(self, node: T.For) -> None:
        if node.kind == T.ForKind.THREAD_BINDING:
            self._thread_binding(node)
            return
        extent, low = const_int(node.extent), const_int(node.min)
        if low is not None and low >= 0 and (node.step is None or const_int(node.step) == 1):
            self._bind_range(node.loop_var, low, extent)
        super()._for(node)

    def _thread_binding(self, node: T.For) -> None:
        """``const int bx = blockIdx.x;``; the body follows at the same depth."""
        var, tag = node.loop_var, str(node.thread_binding.thread_tag)
        self._bind_range(var, 0, const_int(node.extent))
        if var in self._used:
            self.line(f"const {self.type(dtype_of(var))} {self._names.of(var)} = {tag};")
        inner = node.body
        bound = isinstance(inner, T.For) and inner.kind == T.ForKind.THREAD_BINDING
        if not bound and self._lines[-1].endswith(";"):
            self.line("")
        self.stmt(inner)

    def loop_pragma(self, node: T.For) -> str | None:
        """Unrolled and vectorised loops have constant extents."""
        if node.kind in (T.ForKind.UNROLLED, T.ForKind.VECTORIZED):
            factor = const_int(node.annotations.get("pragma_unroll_factor"))
            return f"#pragma unroll {factor}" if factor else "#pragma unroll"
        if const_int(node.annotations.get("tl.no_unroll")):
            return "#pragma unroll 1"
        return None

    def _alloc(self, node: T.AllocBuffer) -> None:
        buffer = node.buffer
        size = const_int(buffer.shape[0])
        if size is None:
            raise CodegenError(
                f"the size of the register array {buffer.name} must be a constant, found "
                f"{buffer.shape[0]}",
                node.span,
            )
        if dtype_of(buffer) in SUB_BYTE:
            size = (size + 1) // 2
        alignment = int(buffer.ty.data_alignment or 0)
        kind = self.storage_type(buffer)
        align = f"alignas({alignment}) " if alignment > _natural_alignment(buffer) else ""
        shared = "__shared__ " if str(buffer.scope()) == "shared" else ""
        self.line(f"{align}{shared}{kind} {self._names.of(buffer)}[{size}];")

    def _declare(self, node: T.DeclBuffer) -> None:
        kind, name = self.storage_type(node.buffer), self._names.of(node.buffer)
        data = node.data
        from_arena = isinstance(data, ir.Call) and data.op.name == "tl.shared_arena"
        if not from_arena and node.buffer not in self._written:
            self.line(
                f"const {kind}* const {name} = reinterpret_cast<const {kind}*>({self.expr(data)});"
            )
            return
        self.line(f"{kind}* const {name} = reinterpret_cast<{kind}*>({self.expr(data)});")

    def _bind(self, node: T.Bind) -> None:
        name, value = self._names.of(node.var), self.expr(node.value)
        if isinstance(node.var.ty, ir.PointerType):
            self.line(f"{self.pointer_type(node.var.ty)} const {name} = {value};")
            return
        if self._is_non_negative_index(node):
            self._bind_range(node.var, 0, None)
        self.line(f"const {self.type(dtype_of(node.var))} {name} = {value};")

    def _is_non_negative_index(self, node: T.Bind) -> bool:
        return dtype_of(node.var) in ("int32", "int64") and self._non_negative(node.value)

    def _store(self, node: T.BufferStore) -> None:
        buffer, index = node.buffer, node.indices[0]
        kind = dtype_of(buffer)
        if kind in SUB_BYTE:
            own = str(buffer.scope()).startswith("local")
            function = self.use("store_sub" if own else "store_sub_shared")
            array = self._names.of(buffer)
            self.line(f"{function}({array}, {self.expr(index)}, {self.expr(node.value)});")
            return
        place, value = self.element(buffer, node.indices), node.value
        symbol = {T.Add: "+", T.Mul: "*", T.Div: "/"}.get(
            type(value), "-" if _is_difference(value) else ""
        )
        if symbol and self._is_element(_operands(value)[0], buffer, index):
            self.line(f"{place} {symbol}= {self.expr(_operands(value)[1])};")
            return
        self.line(f"{place} = {self.expr(value)};")

    def _is_element(self, node: Any, buffer: ir.Var, index: Any) -> bool:
        return (
            isinstance(node, ir.TensorLoad)
            and node.source.same_as(buffer)
            and structural_equal(node.indices[0], index)
            and dtype_of(buffer) in ("float32", "float64", "int32", "int64", "uint32")
        )

    def _assert(self, node: T.AssertStmt) -> None:
        text = "".join(str(part.value) for part in node.message_parts)
        call, _ = self.call(
            "device_assert", self.expr(node.condition), self.text(ir.StringImm(text)),
            self._place(node),
        )  # fmt: skip
        self.line(f"{call};")


def _overlapping(func: T.PrimFunc) -> set[ir.Var]:
    """Parameters that the user says may overlap others."""
    found: set[ir.Var] = set()

    def on_attr(attr: T.AttrStmt) -> None:
        if attr.attr_key == "tl.may_alias":
            found.add(attr.node)

    structural_walk(func.body, (T.AttrStmt, on_attr))
    names = {str(name) for name in (func.attrs or {}).get("tl.may_alias", ())}
    return found | {param for param in func.params if param.name in names}


def _block(attrs: Any) -> tuple[int, int, int]:
    x, y, z = (int(const_int(size) or 1) for size in attrs["tl.block"])
    return x, y, z


def _natural_alignment(buffer: ir.Var) -> int:
    bits = buffer.ty.dtype.dtype.bits * buffer.ty.dtype.dtype.lanes
    return max(1, bits // 8)


def _kind(node: Any, length: int) -> str:
    """What a statement is for the layout of the text."""
    while isinstance(node, T.AttrStmt):
        node = node.body
    if isinstance(node, _DECLARATIONS):
        return "declaration"
    return "block" if isinstance(node, _BLOCKS) and length > 3 else "code"


def _is_difference(value: Any) -> bool:
    if isinstance(value, T.Sub):
        return True
    return isinstance(value, ir.Call) and getattr(value.op, "name", "") == "tl.num.sub"


def _operands(value: Any) -> tuple[Any, Any]:
    return (value.args[0], value.args[1]) if isinstance(value, ir.Call) else (value.a, value.b)


class CUDAModule:
    """CUDA source of one module; the execution backend compiles it.

    Parameters
    ----------
    source : str
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def inspect_source(self, fmt: str = "cu") -> str:
        """The text."""
        return self.source


def build_cuda(mod: IRModule, target: Target) -> CUDAModule:
    """Print thread programs as CUDA source, and let a callback edit it.

    Raises
    ------
    CodegenError
        If the callback fails.
    """
    functions = {}
    for gv, func in mod.functions.items():
        entry = (func.attrs or {}).get("tl.entry")
        functions[str(entry) if entry is not None else gv.name_hint] = func
    directives = pass_option(get_pass_context().config, PassConfigKey.TL_EMIT_LINE_DIRECTIVES)
    return CUDAModule(edit_source(CudaPrinter(bool(directives)).module(functions), target))
