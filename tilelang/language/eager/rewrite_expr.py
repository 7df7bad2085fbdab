"""Rewriting of expressions: operators, subscripts and names become calls into the run-time support.

======================  ==========================================================
source                  rewritten (``t`` is the support module)
======================  ==========================================================
``x`` (local)           ``t.read(x)``: the value of a variable of ``T.alloc_var``
``a + b``               ``t.add(a, b)``
``a < b < c``           ``t.chain(("lt", "lt"), a, b, c)``
``a and b``             ``t.and_end(b) if t.and_begin(a) else t.logic_pop()``
``a if c else b``       ``t.select_end(a if t.select_then(c) else None,``
                        ``b if t.select_else() else None)``
``A[i, 0:4]``           ``t.load(A, (i, t.slice(0, 4, None)))``
``min(a, b)``           ``t.builtin(min)(a, b)``
======================  ==========================================================

Python values keep their Python meaning in every one of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tilelang.errors import TraceError
from tilelang.ir.span import make_span
from tilelang.language.eager.builtin_calls import BUILTINS
from tilelang.language.eager.names import RUNTIME, Names, function_names, has_call, target_names

__all__ = ["BINARY", "ExpressionRewriter", "call", "constant", "load", "store"]

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
}
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_"}
_COMPARE = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Is: "is_",
    ast.IsNot: "is_not",
    ast.In: "in_",
    ast.NotIn: "not_in",
}
#: Builtins with a meaning for run-time values, or that would iterate over a buffer for ever.
_BUILTINS = frozenset(function.__name__ for function in BUILTINS)
#: Methods of Python containers that keep their argument.
_KEEPING = {"add", "append", "appendleft", "extend", "insert", "setdefault"}


def load(name: str) -> ast.Name:
    """The expression that reads ``name``."""
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    """The target that binds ``name``."""
    return ast.Name(name, ast.Store())


def constant(value: Any) -> ast.Constant:
    """A literal; tuples of literals are allowed."""
    return ast.Constant(value)


def call(function: str, *args: ast.expr, at: ast.AST | None = None, of: str = RUNTIME) -> ast.Call:
    """``of.function(*args)``, located at ``at``."""
    node = ast.Call(ast.Attribute(load(of), function, ast.Load()), list(args), [])
    return ast.copy_location(node, at) if at is not None else node


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites expressions in the context of the function whose names are ``names``."""

    def __init__(self, filename: str, outer: Iterable[str]) -> None:
        self.filename = filename
        self.names = Names(set(), set(), set(outer))
        # Open loops that rebind names: (variable holding the loop, position of each name).
        self.loops: list[tuple[str, dict[str, int]]] = []
        self.keeps = True  # whether containers being built keep their elements

    def error(self, node: Any, message: str) -> NoReturn:
        """Raise a TraceError at ``node``."""
        span = make_span(self.filename, node.lineno, node.col_offset + 1)
        raise TraceError(message, span)

    @contextmanager
    def scope(self, names: Names, own: set[str]) -> Iterator[None]:
        """Rewrite inside a function, lambda or comprehension that itself binds ``own``."""
        saved = self.names, self.loops
        self.names = names
        self.loops = [(h, {n: k for n, k in at.items() if n not in own}) for h, at in self.loops]
        try:
            yield
        finally:
            self.names, self.loops = saved

    def raw(self, node: ast.expr) -> ast.expr:
        """Rewrite without reading the result: what it denotes, not the value it holds."""
        if isinstance(node, ast.Name):
            return self._seen(node)
        if isinstance(node, ast.Attribute):
            return ast.copy_location(
                ast.Attribute(self.raw(node.value), node.attr, ast.Load()), node
            )
        if isinstance(node, ast.Subscript):
            return call("item", self.raw(node.value), self.index(node.slice), at=node)
        visited: ast.expr = self.visit(node)
        return visited

    def _seen(self, node: ast.Name) -> ast.expr:
        """Tell the open loops that rebind this name that it was read."""
        result: ast.expr = node
        for handle, positions in self.loops:
            if node.id in positions:
                result = call("seen", constant(positions[node.id]), result, at=node, of=handle)
        return result

    def index(self, node: ast.expr) -> ast.expr:
        """Rewrite what stands between brackets."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(
                ast.Tuple([self.index(e) for e in node.elts], ast.Load()), node
            )
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return call(
                "slice", *(constant(None) if p is None else self.raw(p) for p in parts), at=node
            )
        if isinstance(node, ast.Starred):
            return self.visit_Starred(node)
        return self.raw(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id not in self.names.values:
            return node
        return call("read", self._seen(node), at=node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        plain = self.raw(node)
        if isinstance(root, ast.Name) and root.id not in self.names.values:
            return plain  # a global such as T.float32
        return call("read", plain, at=node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return call("load", self.raw(node.value), self.index(node.slice), at=node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        return call(BINARY[type(node.op)], *self.operands([node.left, node.right]), at=node)

    def operands(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Rewrite operands evaluated one after the other.

        If a later one calls something, it may emit statements; then each earlier one keeps the
        value it had when Python evaluated it.
        """
        if not any(has_call(node) for node in nodes[1:]):
            return [self.raw(node) for node in nodes]
        items: list[ast.expr] = []
        for node in nodes:
            items += [self.visit(node), call("position", at=node)]
        settled = call("settle_all", *items[:-1], at=nodes[0])
        return [ast.copy_location(ast.Starred(settled, ast.Load()), nodes[0])]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.operand, ast.Constant):
            return node
        return call(_UNARY[type(node.op)], self.raw(node.operand), at=node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        kind = "and" if isinstance(node.op, ast.And) else "or"
        result = self.raw(node.values[0])
        for value in node.values[1:]:
            result = ast.IfExp(
                call(f"{kind}_begin", result, at=value),
                call(f"{kind}_end", self.raw(value), at=value),
                call("logic_pop", at=value),
            )
            ast.copy_location(result, node)
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        ops = tuple(_COMPARE[type(op)] for op in node.ops)
        operands = self.operands([node.left, *node.comparators])
        if len(ops) == 1:
            return call(ops[0], *operands, at=node)
        return call("chain", constant(ops), *operands, at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        then = ast.IfExp(
            call("select_then", self.raw(node.test), at=node.test),
            self.visit(node.body),
            constant(None),
        )
        other = ast.IfExp(
            call("select_else", at=node.orelse), self.visit(node.orelse), constant(None)
        )
        return call("select_end", then, other, at=node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = node.target.id
        known = name in self.names.locals or name in self.names.params
        value = self.visit(node.value)
        bound = call(
            "assign", constant(name), value, load(name) if known else constant(None), at=node
        )
        return ast.copy_location(ast.NamedExpr(node.target, bound), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = self.raw(node.func)
        keep = isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS - self.names.values:
            func = call("builtin", func, at=node.func)
            with self._consumed():
                args = [self.visit(arg) for arg in node.args]
        else:
            args = self._arguments(node.args, keep)
        keywords = [
            ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords
        ]
        return ast.copy_location(ast.Call(func, args, keywords), node)

    def _arguments(self, nodes: Sequence[ast.expr], keep: bool) -> list[ast.expr]:
        if keep:
            return [self.element(node) for node in nodes]
        if len(nodes) > 1 and not any(isinstance(node, ast.Starred) for node in nodes):
            if any(has_call(node) for node in nodes[1:]):
                return self.operands(nodes)
        return [self.visit(node) for node in nodes]

    @contextmanager
    def _consumed(self) -> Iterator[None]:
        # A container that only feeds a builtin need not evaluate its elements first.
        saved, self.keeps = self.keeps, False
        try:
            yield
        finally:
            self.keeps = saved

    def element(self, node: ast.expr) -> ast.expr:
        """Rewrite a value that a Python container will hold: what it reads is read now."""
        if isinstance(node, ast.Constant | ast.Starred) or not self.keeps:
            visited: ast.expr = self.visit(node)
            return visited
        return call("element", self.visit(node), at=node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self._display(node)

    def visit_List(self, node: ast.List) -> ast.expr:
        return self._display(node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return self._display(node)

    def _display(self, node: Any) -> ast.expr:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            target: ast.expr = node
            return target
        node.elts = [self.element(element) for element in node.elts]
        result: ast.expr = node
        return result

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        node.keys = [None if key is None else self.visit(key) for key in node.keys]
        node.values = [self.element(value) for value in node.values]
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        values = call("iterate", self.raw(node.value), at=node.value)
        return ast.copy_location(ast.Starred(values, ast.Load()), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        args = self.defaults(node.args)
        names = function_names(node, self.names.values)
        with self.scope(names, names.params):
            body = self.visit(node.body)
        return ast.copy_location(ast.Lambda(args, body), node)

    def defaults(self, args: ast.arguments) -> ast.arguments:
        """Rewrite the default values of a nested function; they belong to the enclosing one."""
        args.defaults = [self.visit(value) for value in args.defaults]
        args.kw_defaults = [None if v is None else self.visit(v) for v in args.kw_defaults]
        return args

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self._comprehension(node)

    def _comprehension(self, node: Any) -> ast.expr:
        first = node.generators[0]
        first_iter = call("iterate", self.raw(first.iter), at=first.iter)
        targets = {name for g in node.generators for name, _ in target_names(g.target)}
        outer = self.names
        inner = Names(outer.params | targets, outer.locals - targets, outer.outer - targets)
        with self.scope(inner, targets):
            for position, generator in enumerate(node.generators):
                if generator.is_async:
                    self.error(generator.target, "an asynchronous comprehension cannot be traced")
                rest = (
                    call("iterate", self.raw(generator.iter), at=generator.iter)
                    if position
                    else None
                )
                generator.iter = rest or first_iter
                generator.ifs = [call("static_test", self.raw(t), at=t) for t in generator.ifs]
            for part in ("elt", "key", "value"):
                if hasattr(node, part):
                    rewrite = self.visit if part == "key" else self.element
                    setattr(node, part, rewrite(getattr(node, part)))
        result: ast.expr = node
        return result

    def visit_Await(self, node: ast.Await) -> ast.expr:
        self.error(node, "await cannot be traced")

    def visit_Yield(self, node: ast.Yield) -> ast.expr:
        self.error(node, "a traced function cannot be a generator (yield)")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        self.error(node, "a traced function cannot be a generator (yield from)")
