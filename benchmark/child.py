"""Runs one suite and prints a JSON line a row; started by ``benchmark/run.py``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

import torch


def main() -> None:
    """``python -m benchmark.child MODULE:FUNCTION [--quick]``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, function = options.suite.split(":")
    for row in getattr(importlib.import_module(module), function)(options.quick):
        sys.stdout.write(json.dumps(row.to_json()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
