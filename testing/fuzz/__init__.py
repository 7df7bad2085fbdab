"""The differential fuzzer: random tile programs through the interpreter, LLVM and C."""
