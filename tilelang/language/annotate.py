"""Facts and wishes about a kernel: layouts, values out of bounds, aliasing, compiler flags.

Annotations of buffers become ``AttrStmt`` nodes around the statements that follow, with the buffer
as node; those of a launch become annotations of it, those of the function its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, cast

__all__ = [
    "annotate_compile_flags",
    "annotate_layout",
    "annotate_pass_configs",
    "annotate_restrict_buffers",
    "annotate_safe_value",
    "no_set_max_nreg",
    "use_swizzle",
]


def _buffer(value: Any, what: str) -> ir.Var:
    if not is_buffer(value):
        raise TraceTypeError(
            f"{what}: expected a buffer, found {type(value).__name__}", user_span()
        )
    return value


def _wrap(what: str, node: Any, key: str, value: ir.Expr) -> None:
    span = user_span()
    builder.current(what).wrap_rest(lambda body: T.AttrStmt(node, key, value, body, span))


def _mapping(what: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise TraceTypeError(f"{what}: expected a dict, found {type(value).__name__}", user_span())
    return value


def annotate_safe_value(values: Mapping[Any, Any]) -> None:
    """Set what reads outside of a buffer give, in tile operations and parallel loops.

    Parameters
    ----------
    values : dict of buffer to number or expression
        Cast to the dtype of the buffer; without an annotation such reads give 0.

    Raises
    ------
    TraceTypeError
        If a key is no buffer or a value no scalar.
    TraceError
        Outside of a kernel.

    Examples
    --------
    >>> T.annotate_safe_value({A: -T.infinity(T.float32)})       # doctest: +SKIP
    """
    what = "T.annotate_safe_value"
    for buffer, value in _mapping(what, values).items():
        target = _buffer(buffer, what)
        _wrap(what, target, "tl.safe_value", cast(as_scalar(value, what), dtype_of(target)))


def annotate_layout(layouts: Mapping[Any, Any]) -> None:
    """Fix the layout of buffers instead of having it inferred.

    Parameters
    ----------
    layouts : dict of buffer to Layout, Fragment or callable
        A fragment needs a ``Fragment``. A callable maps the indices of the buffer to those of its
        storage; it is made into a ``Layout`` over the buffer's shape.

    Raises
    ------
    TraceTypeError
        If a key is no buffer or a value no layout, or a fragment gets no ``Fragment``.
    LayoutError
        If a layout has another shape than its buffer, puts two elements into one place, or names a
        thread that the block does not have.
    """
    # Enumeration code in numpy, only needed here.
    from tilelang.layout import Fragment, Layout
    from tilelang.layout.check import check_fragment, check_layout

    what = "T.annotate_layout"
    for buffer, given in _mapping(what, layouts).items():
        target = _buffer(buffer, what)
        layout = given
        if callable(given) and not isinstance(given, Layout):
            layout = Layout(list(target.shape), given)
        if not isinstance(layout, Layout):
            raise TraceTypeError(
                f"{what}: {target.name} needs a Layout, Fragment or callable, found "
                f"{type(given).__name__}",
                user_span(),
            )
        if target.scope() == "local.fragment" and not isinstance(layout, Fragment):
            raise TraceTypeError(
                f"{what}: fragment {target.name} needs a Fragment, found {type(layout).__name__}",
                user_span(),
            )
        sizes = [const_int(extent) for extent in target.shape]
        shape = [size for size in sizes if size is not None]
        launch = builder.current(what).kernel
        about = f"{what}: the layout of '{target.name}'"
        if len(shape) == len(sizes) and isinstance(layout, Fragment) and launch is not None:
            check_fragment(layout, shape, launch.num_threads, about, user_span())
        elif len(shape) == len(sizes):
            check_layout(layout, shape, about, user_span())
        _wrap(what, [target, layout], "tl.layout", T.IntImm("int32", 0))


def annotate_restrict_buffers(*buffers: Any) -> None:
    """Tell the compiler that these parameters may overlap others: they lose ``restrict``.

    Raises
    ------
    TraceTypeError
        If an argument is no buffer.
    """
    what = "T.annotate_restrict_buffers"
    for buffer in buffers:
        _wrap(what, _buffer(buffer, what), "tl.may_alias", T.IntImm("int32", 1))


def _note(what: str, key: str, value: Any) -> None:
    """Put a fact on the launch that is being traced."""
    kernel = builder.current(what).kernel
    if kernel is None:
        raise TraceError(f"{what} is only valid inside 'with T.Kernel(...)'", user_span())
    kernel.annotations[key] = value


def use_swizzle(
    panel_size: int, order: Literal["row", "column", "mlx"] = "row", enable: bool = True
) -> None:
    """Walk the grid in panels, so that blocks that run at the same time share operands.

    Parameters
    ----------
    panel_size : int
        Rows or columns of blocks in a panel.
    order : {"row", "column", "mlx"}
        The direction inside a panel; ``mlx`` on Metal only.
    enable : bool
        False does nothing.

    Raises
    ------
    TraceError
        For another order, a panel size below 1, or outside of ``T.Kernel``.

    Notes
    -----
    A hint: results do not depend on it. It becomes the annotation ``tl.swizzle`` of the launch.
    """
    if order not in ("row", "column", "mlx"):
        raise TraceError(
            f"T.use_swizzle: order must be row, column or mlx, found {order!r}", user_span()
        )
    if not isinstance(panel_size, int) or panel_size < 1:
        raise TraceError(
            f"T.use_swizzle: panel_size must be an int >= 1, found {panel_size!r}", user_span()
        )
    if enable:
        _note("T.use_swizzle", "tl.swizzle", {"panel_size": panel_size, "order": order})


def no_set_max_nreg() -> None:
    """Leave the register budget alone where the compiler specialises warps (CUDA); a hint."""
    _note("T.no_set_max_nreg", "tl.keep_registers", 1)


def annotate_compile_flags(flags: str | Sequence[str]) -> None:
    """Add flags of the device compiler for this function.

    Parameters
    ----------
    flags : str or list of str
        A string is one flag or several separated by spaces.

    Raises
    ------
    TraceTypeError
        If a flag is no text.
    """
    parts = flags.split() if isinstance(flags, str) else list(flags)
    if not all(isinstance(flag, str) for flag in parts):
        raise TraceTypeError("T.annotate_compile_flags: flags must be text", user_span())
    facts = builder.current("T.annotate_compile_flags").annotations
    facts.setdefault("compile_flags", []).extend(parts)


def annotate_pass_configs(configs: Mapping[str, Any]) -> None:
    """Set pass configurations for this function; those given to the compiler win.

    Raises
    ------
    TraceTypeError
        If ``configs`` is no dict or a key no text.
    """
    what = "T.annotate_pass_configs"
    if not all(isinstance(key, str) for key in _mapping(what, configs)):
        raise TraceTypeError(f"{what}: keys must be text or PassConfigKey", user_span())
    facts = builder.current(what).annotations
    plain = {getattr(key, "value", key): value for key, value in configs.items()}
    facts.setdefault("pass_configs", {}).update(plain)
