"""Rewriting of statements. The shape of the main forms (``t`` is the support module)::

    x = value               x = t.assign(t.hint("x"), value, x)
    A[i] = value            t.store(value, A, i)
    a, b = value            p = t.unpack(value, ("a", "b")); a = t.assign("a", p[0], a); ...

    if test: body           c = t.branch(test, names, (v,))
    else: orelse            if c.then(): body
                            if c.other((v,)):
                                if c.traced: (v,) = c.before
                                orelse
                            if c.traced: (v,) = c.end((v,))

    for i in it: body       l = t.loop(it, "i", names, (i, v))
                            for i in l: body
                            if l.traced: (i, v) = l.end((i, v))

``names`` are the names bound in the block, with the values they hold before and after it: what a
run-time block rebinds is replaced by an object that raises when it is read. Locals start out as
such objects, so that every name can be read at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from tilelang.language.eager.names import (
    RUNTIME,
    SCOPE,
    assigned,
    exposed,
    function_names,
    has_call,
)
from tilelang.language.eager.rewrite_expr import (
    BINARY,
    ExpressionRewriter,
    call,
    constant,
    load,
    store,
)

__all__ = ["Rewriter"]

Body = list[ast.stmt]


def _tuple(names: Iterable[str], bind: bool = False) -> ast.Tuple:
    ctx: ast.expr_context = ast.Store() if bind else ast.Load()
    return ast.Tuple([store(n) if bind else load(n) for n in names], ctx)


def _assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def _pattern(target: ast.expr) -> Any:
    """The shape of a target: a name, ``*name``, None for a subscript, or a tuple of these."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Starred):
        return ("*", _pattern(target.value))
    if isinstance(target, ast.Tuple | ast.List):
        return tuple(_pattern(element) for element in target.elts)
    return None


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Starred):
        return _leaves(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return [leaf for element in target.elts for leaf in _leaves(element)]
    return [target]


class Rewriter(ExpressionRewriter):
    """Rewrites a whole function."""

    def __init__(self, filename: str, outer: Iterable[str]) -> None:
        super().__init__(filename, outer)
        self._temporaries = 0
        self._handles: list[str] = []  # the open loops of the current function

    def rewrite(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return ``node`` rewritten, without decorators, annotations and default values."""
        args = node.args
        args.defaults = []
        args.kw_defaults = [None] * len(args.kwonlyargs)
        return self._function(node, [])

    def _nested(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function inside the function: its arguments are taken at the call."""
        args = node.args
        taken: Body = []
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            kind = [] if arg.annotation is None else [self.visit(arg.annotation)]
            value = call("argument", constant(arg.arg), load(arg.arg), *kind, at=arg)
            taken.append(ast.copy_location(_assign(store(arg.arg), value), arg))
        return self._function(node, taken)

    def _function(self, node: ast.FunctionDef, prologue: Body) -> ast.FunctionDef:
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        for arg in every:
            if arg is not None:
                arg.annotation = None
        names = function_names(node, self.names.values)
        handles, self._handles = self._handles, []
        with self.scope(names, names.params | names.locals):
            body = self.block(node.body)
        self._handles = handles
        begin = call("begin_scope", constant(node.name), of=RUNTIME)
        prologue = [*prologue, _assign(store(SCOPE), begin)]
        prologue += [_assign(store(n), call("unbound", constant(n))) for n in sorted(names.locals)]
        for statement in prologue:
            ast.copy_location(statement, node)
        new = ast.FunctionDef(node.name, args, [*prologue, *body], [])
        if hasattr(node, "type_params"):
            setattr(new, "type_params", [])  # noqa: B010  (Python 3.12 and later only)
        return ast.copy_location(new, node)

    def block(self, body: Sequence[ast.stmt]) -> Body:
        """Rewrite a list of statements."""
        result: Body = []
        for statement in body:
            new = self.visit(statement)
            for item in new if isinstance(new, list) else [new]:
                if not hasattr(item, "lineno"):
                    ast.copy_location(item, statement)
                result.append(item)
        return result or [ast.Pass()]

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"__tl{self._temporaries}__"

    def _bound(self, *bodies: Sequence[ast.AST]) -> dict[str, int]:
        """Names of this function bound in ``bodies``, with the line of the first binding."""
        found = assigned(node for body in bodies for node in body)
        return {name: line for name, line in found.items() if name in self.names.values}

    def _hint(self, name: str, value: ast.expr) -> ast.expr:
        # The name is announced before the value is evaluated, so that an allocation can take it.
        return call("hint", constant(name)) if has_call(value) else constant(name)

    # Assignments

    def _bind(self, target: ast.expr, value: ast.expr, hint: ast.expr | None = None) -> ast.stmt:
        """Assign an already rewritten value to one target that is no tuple."""
        if isinstance(target, ast.Name):
            name = target.id
            known = name in self.names.values
            current = load(name) if known else constant(None)
            bound = call("assign", hint or constant(name), value, current, at=target)
            return _assign(store(name), bound)
        if isinstance(target, ast.Subscript):
            index = self.index(target.slice)
            places = [value, index]
            if has_call(target.slice):
                settled = call("settle_all", value, call("position"), index, at=target)
                places = [ast.copy_location(ast.Starred(settled, ast.Load()), target)]
            return ast.Expr(call("store", *places, self.raw(target.value), at=target))
        if isinstance(target, ast.Attribute):
            attribute = constant(target.attr)
            owner = self.raw(target.value)
            return ast.Expr(call("set_attr", hint or attribute, value, owner, attribute, at=target))
        return self.error(target, "this assignment target cannot be traced")

    def _bind_all(self, target: ast.expr, value: ast.expr) -> Body:
        """Assign an already rewritten value to any target."""
        if not isinstance(target, ast.Tuple | ast.List):
            return [self._bind(target, value)]
        parts = self._temporary()
        leaves = _leaves(target)
        statements: Body = [
            _assign(store(parts), call("unpack", value, constant(_pattern(target)), at=target))
        ]
        for position, leaf in enumerate(leaves):
            part = ast.Subscript(load(parts), constant(position), ast.Load())
            statements.append(self._bind(leaf, part))
        return statements

    def visit_Assign(self, node: ast.Assign) -> Body:
        if len(node.targets) == 1:
            return self._assign_one(node.targets[0], node.value)
        whole = self._temporary()
        first = next((n.id for n in node.targets if isinstance(n, ast.Name)), "value")
        once = call("once", self._hint(first, node.value), self.visit(node.value))
        statements: Body = [_assign(store(whole), once)]
        for target in node.targets:
            statements += self._bind_all(target, load(whole))
        return statements

    def _assign_one(self, target: ast.expr, source: ast.expr) -> Body:
        if isinstance(target, ast.Name):
            hint = self._hint(target.id, source)
            return [self._bind(target, self.visit(source), hint)]
        if isinstance(target, ast.Attribute):
            hint = self._hint(target.attr, source)
            return [self._bind(target, self.visit(source), hint)]
        if isinstance(target, ast.Tuple | ast.List) and isinstance(source, ast.Tuple | ast.List):
            if len(target.elts) == len(source.elts):
                source.elts = [
                    call("named", self._hint(t.id, v), self.visit(v), at=v)
                    if isinstance(t, ast.Name)
                    else self.visit(v)
                    for t, v in zip(target.elts, source.elts, strict=True)
                ]
                return self._bind_all(target, source)
        return self._bind_all(target, self.visit(source))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        op = constant(BINARY[type(node.op)])
        target = node.target
        since = call("position", at=target) if has_call(node.value) else constant(None)
        value = self.visit(node.value)
        if isinstance(target, ast.Name):
            current = self._seen(load(target.id))
            new = call("aug_assign", constant(target.id), op, current, since, value, at=target)
            return _assign(store(target.id), new)
        if isinstance(target, ast.Subscript):
            base, index = self.raw(target.value), self.index(target.slice)
            return ast.Expr(call("aug_store", op, base, index, since, value, at=target))
        owner = self.raw(target.value)
        attribute = constant(target.attr)
        return ast.Expr(call("aug_attr", op, owner, attribute, since, value, at=target))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Body | ast.stmt:
        target = node.target
        if not isinstance(target, ast.Name):
            return ast.Pass() if node.value is None else self._assign_one(target, node.value)
        name = target.id
        current = load(name) if name in self.names.values else constant(None)
        annotation = self.visit(node.annotation)
        if node.value is None:
            declared = call("declare", load(SCOPE), constant(name), annotation, current, at=node)
            return _assign(store(name), declared)
        hint = self._hint(name, node.value)
        value = self.visit(node.value)
        return _assign(store(name), call("ann_assign", hint, value, annotation, current, at=node))

    def visit_Delete(self, node: ast.Delete) -> Body:
        statements: Body = []
        for target in node.targets:
            for leaf in _leaves(target):
                if isinstance(leaf, ast.Name) and leaf.id in self.names.values:
                    statements.append(_assign(store(leaf.id), call("unbound", constant(leaf.id))))
                elif isinstance(leaf, ast.Subscript):
                    base, index = self.raw(leaf.value), self.index(leaf.slice)
                    statements.append(ast.Expr(call("delete_item", base, index)))
                else:
                    statements.append(ast.Delete([leaf]))
        return statements

    # Control flow

    def visit_If(self, node: ast.If) -> Body:
        cond = self._temporary()
        names = self._bound(node.body, node.orelse)
        test = self.raw(node.test)
        statements: Body = [
            _assign(
                store(cond),
                call("branch", test, constant(tuple(names.items())), _tuple(names), at=node.test),
            ),
            ast.If(call("then", of=cond, at=node.test), self.block(node.body), []),
        ]
        if node.orelse:
            restore: Body = []
            if names:
                before = _assign(
                    _tuple(names, bind=True), ast.Attribute(load(cond), "before", ast.Load())
                )
                restore = [ast.If(ast.Attribute(load(cond), "traced", ast.Load()), [before], [])]
            other = call("other", _tuple(names), of=cond, at=node.test)
            statements.append(ast.If(other, [*restore, *self.block(node.orelse)], []))
        statements.append(self._leave(cond, names))
        return statements

    def _leave(self, handle: str, names: Iterable[str]) -> ast.stmt:
        end: ast.stmt = ast.Expr(call("end", _tuple(names), of=handle))
        if names:
            end = _assign(_tuple(names, bind=True), call("end", _tuple(names), of=handle))
        return ast.If(ast.Attribute(load(handle), "traced", ast.Load()), [end], [])

    def visit_For(self, node: ast.For) -> Body:
        iterable = node.iter
        if isinstance(iterable, ast.Call) and self._is_range(iterable.func):
            given = [self.visit(argument) for argument in iterable.args]
            ranged = call("range_", load("range"), *given, at=iterable)
            ranged.keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in iterable.keywords]
            source: ast.expr = ranged
        else:
            source = self.raw(iterable)
        names = self._bound([node])
        has_else = constant(bool(node.orelse))
        pattern = constant(_pattern(node.target))
        listed = constant(tuple(names.items()))
        opened = call("loop", source, pattern, listed, _tuple(names), has_else, at=iterable)
        return self._loop(opened, node.target, names, node)

    def _is_range(self, func: ast.expr) -> bool:
        return (
            isinstance(func, ast.Name) and func.id == "range" and "range" not in self.names.values
        )

    def visit_While(self, node: ast.While) -> Body:
        names = self._bound([node.test], node.body, node.orelse)
        tested = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        listed = constant(tuple(names.items()))
        tested_names = constant(tuple(n for n in names if n in tested))
        has_else = constant(bool(node.orelse))
        mark = call("mark")
        test = self.raw(node.test)
        args = (mark, test, tested_names, listed, _tuple(names), has_else)
        opened = call("while_loop", *args, at=node.test)
        return self._loop(opened, store(self._temporary()), names, node)

    def _loop(
        self, opened: ast.expr, target: ast.expr, names: dict[str, int], node: ast.For | ast.While
    ) -> Body:
        handle = self._temporary()
        carried = exposed(node.body)
        positions = {name: k for k, name in enumerate(names) if name in carried}
        self.loops.append((handle, positions))
        self._handles.append(handle)
        body = self.block(node.body)
        self._handles.pop()
        self.loops.pop()
        orelse = self.block(node.orelse) if node.orelse else []
        loop = ast.For(target, load(handle), body, orelse)
        return [
            _assign(store(handle), opened),
            ast.copy_location(loop, node),
            self._leave(handle, names),
        ]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.If(call("jump", constant("break"), of=self._handles[-1], at=node), [node], [])

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.If(call("jump", constant("continue"), of=self._handles[-1], at=node), [node], [])

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = constant(None) if node.value is None else self.visit(node.value)
        return ast.Return(call("ret", load(SCOPE), value, at=node))

    def visit_Raise(self, node: ast.Raise) -> Body:
        check = ast.Expr(call("check_raise", load(SCOPE), at=node))
        self.generic_visit(node)
        return [check, node]

    def visit_Assert(self, node: ast.Assert) -> Body:
        check = self._temporary()
        message = constant(None) if node.msg is None else self.visit(node.msg)
        return [
            _assign(store(check), call("assertion", self.raw(node.test), at=node.test)),
            ast.If(
                ast.Attribute(load(check), "open", ast.Load()),
                [ast.Expr(call("fail", message, of=check, at=node))],
                [],
            ),
        ]

    def visit_With(self, node: ast.With) -> ast.stmt:
        item, *others = node.items
        target = item.optional_vars
        pattern = constant(None if target is None else _pattern(target))
        entered = call("enter", self.visit(item.context_expr), pattern, at=item.context_expr)
        head: Body = []
        value = None
        if target is not None:
            name = self._temporary()
            value = store(name)
            head = self._bind_all(target, load(name))
        if others:
            rest: ast.stmt = ast.copy_location(ast.With(others, node.body), node)
            body = self.block([rest])
        else:
            body = self.block(node.body)
        return ast.With([ast.withitem(entered, value)], [*head, *body])

    # Other statements

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant):
            return ast.Pass()
        return ast.Expr(call("stmt", self.visit(node.value), at=node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        if node.decorator_list:  # the decorator decides; T.macro finds the source by itself
            return node
        self.defaults(node.args)
        return self._nested(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node.subject = call("match_subject", self.raw(node.subject), at=node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = call("static_test", self.raw(case.guard), at=case.guard)
            case.body = self.block(case.body)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        for part in ("body", "orelse", "finalbody"):
            if getattr(node, part):
                setattr(node, part, self.block(getattr(node, part)))
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        return node

    visit_TryStar = visit_Try

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.stmt:
        self.error(node, "an asynchronous loop cannot be traced")

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.stmt:
        self.error(node, "an asynchronous with cannot be traced")
