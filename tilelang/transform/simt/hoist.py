"""Views are declared before the nests that use them."""

from __future__ import annotations

from typing import Any

from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate

from tilelang.transform.simt.nest import nest_of

__all__ = ["hoist_views"]


def hoist_views(func: T.PrimFunc) -> T.PrimFunc:
    """Move the declarations of views out of parallel nests.

    What a nest reads and writes may then be collected before or behind the work of an iteration.

    Before: ``for i in T.parallel(8): [view = T.view(A); B[i] = view[i]]``. After: ``view =
    T.view(A)`` and ``for i in T.parallel(8): B[i] = view[i]``.
    """

    def on_for(loop: T.For, mutator: Any) -> Any:
        if nest_of(loop) is None:
            return mutator.default_mutate(loop)
        views: list[T.Stmt] = []

        def without_views(block: T.SeqStmt) -> T.Stmt:
            views.extend(stmt for stmt in block.seq if isinstance(stmt, T.DeclBuffer))
            return T.stmt_seq(*[s for s in block.seq if not isinstance(s, T.DeclBuffer)])

        nest = structural_map(loop, (T.SeqStmt, without_views))
        return T.stmt_seq(*views, nest)

    return func.with_body(structural_mutate(func.body, [(T.For, on_for)]))
