"""Thread programs made by hand: what the printer of kernels gets."""

from __future__ import annotations

import tvm
from tvm import ir
from tvm import tirx as T
from tvm.target import Target

from tilelang.cuda.codegen import build_cuda
from tilelang.cuda.transform.numerics import legalize_numerics


def buffer(name, size, dtype, scope="global", **options):
    return T.decl_buffer((size,), dtype, name, scope=scope, layout=None, **options)


def load(source, index):
    return T.BufferLoad(source, [index])


def address(source, index=0):
    return T.address_of(load(source, index))


def store(target, index, value):
    return T.BufferStore(target, value, [index])


def bind_thread(tag, var, extent, body):
    axis = T.IterVar(ir.Range(0, extent), T.Var("", "int32"), T.IterVar.ThreadIndex, tag)
    return T.For(var, 0, extent, T.ForKind.THREAD_BINDING, body, axis)


def kernel(params, make, threads=32, blocks=4, name="kernel_0", legalize=True):
    """A kernel over ``blocks`` and ``threads``; ``make(bx, tx)`` gives its statements."""
    bx, tx = T.Var("bx", "int32"), T.Var("tx", "int32")
    body = make(bx, tx)
    body = T.SeqStmt(body) if isinstance(body, list) and len(body) > 1 else body
    body = body[0] if isinstance(body, list) else body
    loops = bind_thread("blockIdx.x", bx, blocks, bind_thread("threadIdx.x", tx, threads, body))
    func = T.PrimFunc(params, loops)
    func = func.with_attr("tl.entry", name).with_attr("tl.block", [threads, 1, 1])
    return legalize_numerics(func) if legalize else func


def source(func):
    """The CUDA text of a kernel."""
    return build_cuda(tvm.IRModule({"kernel_0": func}), Target("cuda")).source
