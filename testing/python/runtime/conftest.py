"""Compiled workers, for tests where a Python worker would be too slow or hold the lock."""

import shutil
import subprocess

import pytest
import tvm_ffi

SOURCE = r"""
#include <pthread.h>
#include <tvm/ffi/c_api.h>

#define WORKER(name) int32_t __tvm_ffi_##name(void* self, TVMFFIAny* args, int32_t n, TVMFFIAny* r)
#define SLOT(i) (((uint64_t*)args[0].v_ptr)[i])

WORKER(nothing) { return 0; }

/* B[block] = A[block] + 1 */
WORKER(add_one) {
  for (int64_t i = args[1].v_int64; i < args[2].v_int64; ++i)
    ((float*)SLOT(1))[i] = ((const float*)SLOT(0))[i] + 1;
  return 0;
}

/* A[block] = the thread that ran it */
WORKER(thread_ids) {
  for (int64_t i = args[1].v_int64; i < args[2].v_int64; ++i)
    ((int64_t*)SLOT(0))[i] = (int64_t)pthread_self();
  return 0;
}

WORKER(fail) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "the worker failed");
  return -1;
}
"""


@pytest.fixture(scope="session")
def worker_library(tmp_path_factory):
    """Path of a shared library that exports the workers above."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("workers")
    source, library = folder / "workers.c", folder / "workers.so"
    source.write_text(SOURCE)
    includes = [tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path()]
    flags = ["-O2", "-fPIC", "-shared", "-w", *(f"-I{path}" for path in includes)]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="session")
def workers(worker_library):
    """The library as a module: ``workers["add_one"]``."""
    return tvm_ffi.load_module(str(worker_library))
