"""What the annotations of a function mean, found by looking names up, without running its code."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal

from tvm import ir

from tilelang.errors import TraceTypeError
from tilelang.ir.dtype import dtype as to_dtype
from tilelang.language.eager.code_cache import CodeCache
from tilelang.language.eager.source import code_of, parse_function
from tilelang.language.tensor import PointerSpec, StridedTensor, Tensor, TensorSpec, handle, ptr

__all__ = ["UNKNOWN", "Kind", "Resolver", "declared_in_body", "own_nodes"]

Kind = Literal["tensor", "scalar", "static", "unknown"]
UNKNOWN: Any = object()
_declared: CodeCache[list[tuple[str, ast.expr]]] = CodeCache()
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _kind_of(value: Any) -> Kind:
    """What an object means as an annotation."""
    if value is UNKNOWN:
        return "unknown"
    if isinstance(value, TensorSpec | PointerSpec) or value is ptr or value is handle:
        return "tensor"
    if isinstance(value, type) and issubclass(value, Tensor | StridedTensor):
        return "tensor"
    if isinstance(value, to_dtype | ir.Var) or type(value).__module__ == "torch":
        return "scalar"
    if isinstance(value, str):
        try:
            to_dtype(value)
        except TraceTypeError:
            return "static"
        return "scalar"
    return "static"


class Resolver:
    """Looks up the names of a function: closure, globals, builtins, and imports in its body."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        code = func.__code__
        self.names: dict[str, Any] = dict.fromkeys((*code.co_varnames, *code.co_cellvars), UNKNOWN)
        for name, cell in zip(code.co_freevars, func.__closure__ or (), strict=True):
            try:
                self.names[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                self.names[name] = UNKNOWN
        for node in own_nodes(parse_function(func).body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._learn_import(node)

    def _learn_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name if alias.asname else alias.name.split(".")[0]
                found: Any = sys.modules.get(path, UNKNOWN)
            else:
                module = sys.modules.get(node.module or "") if node.level == 0 else None
                found = getattr(module, alias.name, UNKNOWN)
                if found is UNKNOWN:
                    found = sys.modules.get(f"{node.module}.{alias.name}", UNKNOWN)
            self.names[alias.asname or alias.name.split(".")[0]] = found

    def lookup(self, node: ast.expr) -> Any:
        """The object a name or dotted name stands for, or UNKNOWN."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            return self.func.__globals__.get(node.id, getattr(builtins, node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self.lookup(node.value)
            if isinstance(owner, types.ModuleType):
                return getattr(owner, node.attr, UNKNOWN)
        if isinstance(node, ast.Constant):
            return node.value
        return UNKNOWN

    def kind(self, annotation: ast.expr) -> Kind:
        """What an annotation declares."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return self._text_kind(annotation.value)
        node = annotation
        while isinstance(node, ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        return _kind_of(self.lookup(node))

    def _text_kind(self, text: str) -> Kind:
        """A name means what it is bound to (``int`` is the class); else it may spell a dtype."""
        try:
            kind = self.kind(ast.parse(text.strip(), mode="eval").body)
        except SyntaxError:
            kind = "static"
        return _kind_of(text) if kind == "unknown" else kind

    def parameter_kind(self, name: str) -> Kind:
        """What the annotation of parameter ``name`` in the signature declares."""
        annotation = self.func.__annotations__.get(name, UNKNOWN)
        if isinstance(annotation, str):
            return self._text_kind(annotation)
        return "static" if annotation is UNKNOWN else _kind_of(annotation)


def own_nodes(body: list[Any]) -> Iterator[ast.AST]:
    """The nodes of a function body, without those of nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, _NESTED):
            yield from own_nodes(list(ast.iter_child_nodes(node)))


def declared_in_body(func: Callable[..., Any]) -> list[tuple[str, ast.expr]]:
    """The declarations ``name: annotation`` (without a value) in the body of ``func``."""
    code = code_of(func)
    found = _declared.get(code)
    if found is None:
        found = [
            (node.target.id, node.annotation)
            for node in own_nodes(parse_function(func).body)
            if isinstance(node, ast.AnnAssign) and node.value is None
            if isinstance(node.target, ast.Name)
        ]
        _declared.put(code, found)
    return found
