"""When the package was built."""

from __future__ import annotations

import datetime
import re
from importlib import metadata
from pathlib import Path

__all__ = ["build_date"]


def build_date(version: str | None = None) -> datetime.date | None:
    """The date of a build.

    Parameters
    ----------
    version : str, optional
        A version whose local part ends in ``dYYYYMMDD``, as development builds are numbered. By
        default the version of the installed package; one without a date is dated by its metadata
        on disk.

    Returns
    -------
    datetime.date or None
        None if ``version`` carries no date, or the package is not installed.

    Examples
    --------
    >>> build_date("0.1.0+cpu.d20260102")
    datetime.date(2026, 1, 2)
    """
    installed = None
    if version is None:
        try:
            installed = metadata.distribution("tilelang")
        except metadata.PackageNotFoundError:
            return None
        version = installed.version
    if found := re.search(r"[.+]d(\d{4})(\d{2})(\d{2})$", version):
        year, month, day = map(int, found.groups())
        return datetime.date(year, month, day)
    if installed is None:
        return None
    record = next((file for file in installed.files or () if file.name == "METADATA"), None)
    if record is None:
        return None
    return datetime.date.fromtimestamp(Path(record.locate()).stat().st_mtime)
