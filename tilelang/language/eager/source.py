"""From a Python function to its rewritten twin: find the source, rewrite it, rebuild the function.

The twin is compiled under the original file name and line numbers, shares the globals and the
closure cells of the original, and has one more cell: the run-time support module under the name
:data:`RUNTIME`. Rewritten code is cached per code object, so a factory that defines the same
kernel many times pays for the rewrite once.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import itertools
import linecache
import sys
import tokenize
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelang.errors import TraceError
from tilelang.ir.span import make_span, user_span
from tilelang.language.eager.code_cache import CodeCache
from tilelang.language.eager.names import RUNTIME, annotation_names
from tilelang.language.eager.rewrite import Rewriter

__all__ = ["code_of", "function_span", "parse_function", "rewrite_function"]

_rewritten: CodeCache[types.CodeType] = CodeCache()
_parsed: CodeCache[ast.FunctionDef] = CodeCache()


_MISSING = object()


def function_span(func: Callable[..., Any]) -> Any:
    """The span of the definition of ``func``; None for a callable that is no function."""
    code = getattr(func, "__code__", None)
    return None if code is None else make_span(code.co_filename, code.co_firstlineno)


def parse_function(func: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of ``func`` with the line and column numbers of its file.

    Raises
    ------
    TraceError
        If ``func`` is no plain ``def`` or its source text is not available.
    """
    code = code_of(func)
    tree = _parsed.get(code)
    if tree is None:
        tree = _parsed.put(code, _parse(func, code))
    return tree


def rewrite_function(
    func: Callable[..., Any], runtime: Any, namespace: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The twin of ``func`` that builds IR through ``runtime`` instead of computing.

    ``namespace`` has the names around the definition of ``func``, for declarations in its body that
    ``from __future__ import annotations`` hides from Python.
    """
    original = code_of(func)
    code = _rewritten.get(original)
    if code is None:
        code = _rewritten.put(original, _rewrite(func, original))
    cells = dict(zip(original.co_freevars, func.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(runtime)
    for name in code.co_freevars:
        if name not in cells:
            around = {} if namespace is None else namespace
            value = around.get(name, func.__globals__.get(name, _MISSING))
            cells[name] = types.CellType() if value is _MISSING else types.CellType(value)
    twin = types.FunctionType(
        code,
        func.__globals__,
        func.__name__,
        func.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    twin.__kwdefaults__ = func.__kwdefaults__
    twin.__qualname__ = func.__qualname__
    return twin


def code_of(func: Callable[..., Any]) -> types.CodeType:
    """The code of a plain Python function.

    Raises
    ------
    TraceError
        If ``func`` is something else.
    """
    if not isinstance(func, types.FunctionType):
        raise TraceError(
            f"only a plain Python function can be traced, found {type(func).__name__}; decorate "
            "the function itself, below any other decorator",
            user_span(),
        )
    return func.__code__


def _parse(func: Callable[..., Any], code: types.CodeType) -> ast.FunctionDef:
    span = function_span(func)
    if code.co_name == "<lambda>":
        raise TraceError("a lambda cannot be traced; write a function with def", span)
    linecache.checkcache(code.co_filename)  # a module may be loaded again after an edit
    lines = linecache.getlines(code.co_filename, func.__globals__)
    first = code.co_firstlineno
    if first > len(lines):
        raise TraceError(
            f"the source of '{func.__name__}' is not available ({code.co_filename}); kernels must "
            "be defined in a file or a notebook cell",
            span,
        )
    try:
        text = "".join(inspect.getblock(lines[first - 1 :]))
        # An indented block is parsed inside `if 1:` so that string literals stay untouched.
        indented = text[:1].isspace()
        tree = ast.parse("if 1:\n" + text if indented else text)
    except (SyntaxError, tokenize.TokenError) as error:
        raise TraceError(
            f"the source of '{func.__name__}' cannot be parsed: {error}", span
        ) from None
    body: Any = tree.body[0]
    node = body.body[0] if indented else body
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        kind = (
            "an async function" if isinstance(node, ast.AsyncFunctionDef) else "not that function"
        )
        raise TraceError(
            f"'{func.__name__}' cannot be traced: the source at its line is {kind} "
            "(was the file changed after it was imported?)",
            span,
        )
    ast.increment_lineno(node, first - 1 - int(indented))
    return node


def _rewrite(func: Callable[..., Any], code: types.CodeType) -> types.CodeType:
    tree = _parse(func, code)
    hidden: set[str] = set()
    if code.co_flags & __future__.annotations.compiler_flag:
        own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names}
        hidden = annotation_names(tree) - own - set(dir(builtins))
    free = [name for name in code.co_freevars if name != "__class__"]
    rewriter = Rewriter(code.co_filename, (*code.co_freevars, *hidden))
    return _compile(func, rewriter.rewrite(tree), [RUNTIME, *free, *sorted(hidden)])


def _compile(
    func: Callable[..., Any], tree: ast.FunctionDef, names: Sequence[str]
) -> types.CodeType:
    """Compile ``tree`` where its free names and private names resolve as in the original."""
    code = func.__code__
    inner: ast.stmt = tree
    owner = _enclosing_class(func.__qualname__)
    if owner is not None:  # keep the mangling of __names
        inner = ast.ClassDef(owner, bases=[], keywords=[], body=[tree], decorator_list=[])
    arguments = [ast.arg(name) for name in names]
    outer = ast.FunctionDef(
        "__outer__",
        ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[inner],
        decorator_list=[],
    )
    for node in (outer, inner):
        if sys.version_info >= (3, 12) and not hasattr(node, "type_params"):
            node.type_params = []
    module = ast.fix_missing_locations(ast.Module([outer], type_ignores=[]))
    try:
        compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise TraceError(
            f"'{func.__name__}' cannot be rewritten: {error.msg}",
            make_span(code.co_filename, error.lineno or code.co_firstlineno),
        ) from None
    return _find_code(compiled, ["__outer__", *([owner] if owner else []), tree.name])


def _enclosing_class(qualname: str) -> str | None:
    """The innermost class around a function: a part of its name not followed by ``<locals>``."""
    parts = qualname.split(".")
    classes = [name for name, after in itertools.pairwise(parts) if "<locals>" not in (name, after)]
    return classes[-1] if classes else None


def _find_code(code: types.CodeType, path: list[str]) -> types.CodeType:
    for name in path:
        code = next(
            const
            for const in code.co_consts
            if isinstance(const, types.CodeType) and const.co_name == name
        )
    return code
