"""Split a traced function into its launches and the data that says how to run them.

The host part of a tile program is small: lets, assertions, workspaces, views, and launches, maybe
under conditions or constant loops. All of it becomes a :class:`LaunchPlan`; nothing of it is
compiled. Each launch becomes one device function whose parameters are exactly what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_map, structural_walk

from tilelang.engine.accesses import record_accesses, view_source
from tilelang.engine.expr_program import IntExpr, Sym
from tilelang.engine.launch_plan import ArgRef, Check, KernelLaunch, LaunchPlan, Param, Workspace
from tilelang.errors import SemanticError, render_span
from tilelang.ir.expr import const_int, dtype_of, is_buffer

__all__ = ["DeviceFunction", "is_launch", "split_launches"]

_MAX_HOST_UNROLL = 256
_BINARY = {
    T.Add: "+",
    T.Sub: "-",
    T.Mul: "*",
    T.FloorDiv: "//",
    T.FloorMod: "%",
    T.Min: "min",
    T.Max: "max",
    T.LT: "<",
    T.LE: "<=",
    T.GT: ">",
    T.GE: ">=",
    T.EQ: "==",
    T.NE: "!=",
    T.And: "and",
    T.Or: "or",
    T.LShift: "<<",
    T.RShift: ">>",
    T.BitwiseAnd: "&",
    T.BitwiseOr: "|",
    T.BitwiseXor: "^",
}
_CALLS = {"prim.if_then_else": "select"}


@dataclass(frozen=True)
class DeviceFunction:
    """One launch as a function of its own: its arguments as parameters, its nest as body."""

    name: str
    func: T.PrimFunc
    launch: KernelLaunch


@dataclass
class _Split:
    """State of one walk over the host part."""

    func: T.PrimFunc
    name: str
    symbols: dict[ir.Var, int] = field(default_factory=dict)
    lets: dict[ir.Var, ir.Expr] = field(default_factory=dict)
    views: list[T.DeclBuffer] = field(default_factory=list)
    workspaces: list[ir.Var] = field(default_factory=list)
    attributes: list[T.AttrStmt] = field(default_factory=list)
    conditions: list[IntExpr] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    devices: list[DeviceFunction] = field(default_factory=list)
    accesses: dict[ir.Var, set[str]] = field(default_factory=dict)


def split_launches(func: T.PrimFunc, device: str) -> tuple[LaunchPlan, list[DeviceFunction]]:
    """Split ``func`` into a launch plan and one device function a launch.

    Parameters
    ----------
    func : PrimFunc
        A traced tile program. Without any launch its whole body is one block.
    device : str
        Where its tensors live, ``"cpu"`` or ``"cuda"``.

    Raises
    ------
    SemanticError
        If the host part does something that only a kernel can, such as reading a tensor.
    """
    state = _Split(func, str(func.attrs["global_symbol"]))
    _collect_symbols(state)
    body = func.body
    if not any(is_launch(loop) for loop in _loops(body)):
        _add_device(state, body, [1, 1, 1], [1, 1, 1])
    else:
        _host_stmt(state, body)
    outputs = [int(i) % len(func.params) for i in (func.attrs or {}).get("tilelang_out_idx", [])]
    plan = LaunchPlan(
        name=state.name,
        symbols=tuple(var.name for var in state.symbols),
        params=tuple(_param(state, i in outputs, p, device) for i, p in enumerate(func.params)),
        checks=(*_size_checks(state), *state.checks),
        workspaces=tuple(
            Workspace(dtype_of(w), tuple(_int_expr(state, e) for e in w.shape))
            for w in state.workspaces
        ),
        kernels=tuple(d.launch for d in state.devices),
        returns=tuple(outputs),
        returns_list=len(outputs) > 1,
    )
    return plan, state.devices


def _loops(root: Any) -> Iterator[T.For]:
    found: list[T.For] = []
    structural_walk(root, (T.For, found.append))
    return iter(found)


def is_launch(loop: T.For) -> bool:
    """Whether ``loop`` is a dimension of a launch."""
    return "tl.launch" in loop.annotations or _block_tag(loop) is not None


def _block_tag(loop: T.For) -> str | None:
    if loop.kind != T.ForKind.THREAD_BINDING:
        return None
    tag = str(loop.thread_binding.thread_tag)
    return tag if tag.startswith("blockIdx") else None


# --- symbols and parameters -----------------------------------------------------------------


def _collect_symbols(state: _Split) -> None:
    def add(var: ir.Var) -> None:
        state.symbols.setdefault(var, len(state.symbols))

    for param in state.func.params:
        if is_buffer(param):
            for expr in (*param.shape, *param.ty.strides):
                structural_walk(expr, (ir.Var, add))
    for param in state.func.params:
        scalar = not is_buffer(param) and not isinstance(param.ty, ir.PointerType)
        if scalar and dtype_of(param).startswith(("int", "uint", "bool")):
            add(param)


def _size_checks(state: _Split) -> Iterator[Check]:
    """Sizes and strides arrive as 64-bit numbers; they must fit the dtype declared for them."""
    scalars = set(state.func.params)
    for var, index in state.symbols.items():
        dtype = dtype_of(var)
        if var in scalars or dtype in ("int64", "uint64"):
            continue
        limit = 2 ** (DataType(dtype).bits - dtype.startswith("int"))
        fits = ("and", ("<", Sym(index), limit), (">=", Sym(index), -limit))
        yield Check(
            fits,
            f"size {var.name} does not fit {dtype}; "
            f"declare it with T.dynamic('{var.name}', 'int64')",
        )


def _param(state: _Split, is_output: bool, var: ir.Var, device: str) -> Param:
    if not is_buffer(var):
        kind: Any = "pointer" if dtype_of(var) == "handle" else "scalar"
        return Param(var.name, kind, dtype_of(var), device, symbol=state.symbols.get(var))
    strides = tuple(_int_expr(state, s) for s in var.ty.strides)
    used = state.accesses.get(var, set())
    access: Any = "".join(mode for mode in "rw" if mode in used) or "none"
    return Param(
        var.name,
        "tensor",
        dtype_of(var),
        device,
        tuple(_int_expr(state, e) for e in var.shape),
        None if not strides or is_output else strides,
        access,
        "out" if is_output else "in",
    )


def _int_expr(state: _Split, expr: Any) -> IntExpr:
    """Translate an integer expression over symbols; SemanticError if it is something else."""
    value = const_int(expr)
    if value is not None:
        return value
    if isinstance(expr, ir.Var) and expr in state.symbols:
        return Sym(state.symbols[expr])
    if isinstance(expr, ir.Var) and expr in state.lets:
        return _int_expr(state, state.lets[expr])
    if type(expr) in _BINARY:
        return (_BINARY[type(expr)], _int_expr(state, expr.a), _int_expr(state, expr.b))
    if isinstance(expr, T.Not):
        return ("not", _int_expr(state, expr.a))
    if isinstance(expr, T.Select):
        return (
            "select",
            *(_int_expr(state, e) for e in (expr.condition, expr.true_value, expr.false_value)),
        )
    if isinstance(expr, T.Cast) and dtype_of(expr).startswith(("int", "uint", "bool")):
        return _int_expr(state, expr.value)
    if isinstance(expr, ir.Call) and isinstance(expr.op, ir.Op) and expr.op.name in _CALLS:
        return (_CALLS[expr.op.name], *(_int_expr(state, arg) for arg in expr.args))
    raise SemanticError(
        f"host code computes only with sizes and integer arguments; it cannot evaluate {expr}. "
        "Move it inside T.Kernel",
        getattr(expr, "span", None),
    )


# --- host statements ------------------------------------------------------------------------


def _host_stmt(state: _Split, stmt: Any) -> None:
    handler = _HANDLERS.get(type(stmt))
    if handler is None:
        raise SemanticError(
            f"a {type(stmt).__name__} statement outside T.Kernel cannot run on the host; "
            "move it into the kernel",
            stmt.span,
        )
    handler(state, stmt)


def _host_seq(state: _Split, stmt: T.SeqStmt) -> None:
    for child in stmt.seq:
        _host_stmt(state, child)


def _host_bind(state: _Split, stmt: T.Bind) -> None:
    loads: list[Any] = []
    structural_walk(stmt.value, (ir.TensorLoad, loads.append))
    if loads:
        raise SemanticError(
            f"host code cannot read the tensor {loads[0].source.name}; move the read into T.Kernel",
            stmt.span,
        )
    state.lets[stmt.var] = _inline(state, stmt.value)


def _host_assert(state: _Split, stmt: T.AssertStmt) -> None:
    text = "".join(str(getattr(part, "value", part)) for part in stmt.message_parts)
    state.checks.append(Check(_guarded(state, _int_expr(state, stmt.condition)), text))


def _guarded(state: _Split, cond: IntExpr) -> IntExpr:
    for condition in state.conditions:
        cond = ("or", ("not", condition), cond)
    return cond


def _host_alloc(state: _Split, stmt: T.AllocBuffer) -> None:
    if stmt.buffer.scope() != "global":
        raise SemanticError(
            f"{stmt.buffer.name} of scope {stmt.buffer.scope()} is allocated outside T.Kernel; "
            "only T.alloc_global may stand there",
            stmt.span,
        )
    state.workspaces.append(stmt.buffer)


def _host_view(state: _Split, stmt: T.DeclBuffer) -> None:
    state.views.append(stmt)


def _host_if(state: _Split, stmt: T.IfThenElse) -> None:
    condition = _int_expr(state, stmt.condition)
    for branch, cond in ((stmt.then_case, condition), (stmt.else_case, ("not", condition))):
        if branch is not None:
            state.conditions.append(cond)
            _host_stmt(state, branch)
            state.conditions.pop()


def _host_for(state: _Split, stmt: T.For) -> None:
    if is_launch(stmt):
        _host_launch(state, stmt)
        return
    start, extent = const_int(stmt.min), const_int(stmt.extent)
    if start is None or extent is None or extent > _MAX_HOST_UNROLL:
        raise SemanticError(
            f"a loop around T.Kernel needs a constant trip count of at most {_MAX_HOST_UNROLL}",
            stmt.span,
        )
    step = const_int(stmt.step) if stmt.step is not None else 1
    for value in range(start, start + extent, step or 1):
        state.lets[stmt.loop_var] = T.const(value, dtype_of(stmt.loop_var))
        _host_stmt(state, stmt.body)


def _host_attr(state: _Split, stmt: T.AttrStmt) -> None:
    state.attributes.append(stmt)
    _host_stmt(state, stmt.body)
    state.attributes.pop()


def _host_evaluate(state: _Split, stmt: T.Evaluate) -> None:
    if const_int(stmt.value) is None:
        raise SemanticError(f"{stmt.value} cannot run outside T.Kernel", stmt.span)


_HANDLERS: dict[type, Callable[[_Split, Any], None]] = {
    T.SeqStmt: _host_seq,
    T.Bind: _host_bind,
    T.AssertStmt: _host_assert,
    T.AllocBuffer: _host_alloc,
    T.DeclBuffer: _host_view,
    T.IfThenElse: _host_if,
    T.For: _host_for,
    T.AttrStmt: _host_attr,
    T.Evaluate: _host_evaluate,
}


# --- launches -------------------------------------------------------------------------------


def _host_launch(state: _Split, stmt: T.For) -> None:
    grid: list[IntExpr] = [1, 1, 1]
    block: list[IntExpr] = [1, 1, 1]
    loop: Any = stmt
    while isinstance(loop, T.For) and loop.kind == T.ForKind.THREAD_BINDING:
        tag = str(loop.thread_binding.thread_tag)
        extents = grid if tag.startswith("blockIdx") else block
        extents["xyz".index(tag[-1])] = _int_expr(state, loop.extent)
        loop = loop.body
    for condition in state.conditions:
        grid[0] = ("select", condition, grid[0], 0)
    _add_device(state, stmt, grid, block)


def _inline(state: _Split, node: Any) -> Any:
    """Substitute host lets; new loop variables keep repeated bodies in single-assignment form."""
    if not state.lets:
        return node
    return structural_map(node, (ir.Var, lambda v: state.lets.get(v, v)))


def _add_device(state: _Split, stmt: Any, grid: list[IntExpr], block: list[IntExpr]) -> None:
    body = T.stmt_seq(*state.views, _inline(state, stmt)) if state.views else _inline(state, stmt)
    for attr in reversed(state.attributes):
        body = T.AttrStmt(attr.node, attr.attr_key, attr.value, body, attr.span)
    sources = {v.buffer: view_source(v.data) for v in state.views}
    _check_assumptions(state, body)
    used = _used_vars(body)
    record_accesses(body, sources, state.accesses)
    entry = _foreign_entry(stmt)
    if entry is not None:
        used = _all_arguments(state)
    params: list[ir.Var] = []
    args: list[ArgRef] = []
    for index, param in enumerate(state.func.params):
        if param in used:
            params.append(param)
            args.append(ArgRef("param", index))
    for index, workspace in enumerate(state.workspaces):
        if workspace in used:
            params.append(workspace)
            args.append(ArgRef("workspace", index))
    taken = set(params)
    for symbol, index in state.symbols.items():
        if symbol in used and symbol not in taken:
            params.append(symbol)
            args.append(ArgRef("symbol", index))
    number = len(state.devices)
    name = entry or f"{state.name}_kernel" + (f"_{number}" if number else "")
    _check_entry(state, name, stmt)
    func = T.PrimFunc(params, body, span=state.func.span).with_attr("global_symbol", name)
    gx, gy, gz = grid
    bx, by, bz = block
    launch = KernelLaunch(name, (gx, gy, gz), (bx, by, bz), tuple(args))
    state.devices.append(DeviceFunction(name, func, launch))


def _foreign_entry(stmt: Any) -> str | None:
    """The name of the kernel that a launch gives as text of the device's language."""
    entry = stmt.annotations.get("tl.foreign_entry") if isinstance(stmt, T.For) else None
    return None if entry is None else str(entry)


def _all_arguments(state: _Split) -> set[ir.Var]:
    """What a foreign kernel gets: everything there is; it may read and write all of it."""
    for param in state.func.params:
        if is_buffer(param):
            state.accesses.setdefault(param, set()).update("rw")
    return {*state.func.params, *state.workspaces, *state.symbols}


def _check_entry(state: _Split, name: str, stmt: Any) -> None:
    """Two launches may share a name only if they launch the same foreign kernel."""
    for device in state.devices:
        own = device.func.body
        same = _foreign_entry(own) is not None and structural_equal(_launched(own), _launched(stmt))
        if device.name == name and not same:
            raise SemanticError(f"two different kernels are named '{name}'", stmt.span)


def _launched(loop: Any) -> Any:
    """Annotations and body of a launch, without its extents."""
    notes = loop.annotations
    while isinstance(loop, T.For) and loop.kind == T.ForKind.THREAD_BINDING:
        loop = loop.body
    return [notes, loop]


def _check_assumptions(state: _Split, stmt: Any) -> None:
    """Assumptions on the arguments alone that every block makes are checked at the call."""
    if isinstance(stmt, T.SeqStmt):
        for child in stmt.seq:
            _check_assumptions(state, child)
    elif isinstance(stmt, T.AttrStmt) or (
        isinstance(stmt, T.For) and stmt.kind == T.ForKind.THREAD_BINDING
    ):
        _check_assumptions(state, stmt.body)
    elif isinstance(stmt, T.Evaluate) and _is_assumption(stmt.value):
        condition = stmt.value.args[0]
        if not all(var in state.symbols for var in _used_vars(condition)):
            return
        try:
            holds = _guarded(state, _int_expr(state, condition))
        except SemanticError:  # it reads a tensor
            return
        where = "" if stmt.span is None else f"\n{render_span(stmt.span)}"
        state.checks.append(Check(holds, f"T.assume({condition}) does not hold{where}"))


def _is_assumption(value: Any) -> bool:
    called = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return called and value.op.name == "tirx.assume"


def _used_vars(body: Any) -> set[ir.Var]:
    used: set[ir.Var] = set()
    structural_walk(body, (ir.Var, used.add))
    return used
