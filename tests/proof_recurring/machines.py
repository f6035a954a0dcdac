"""Machines whose wall clocks can be set while nodes run on them."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from tests.proof_recurring.settable.sitecustomize import OFF

SETTABLE = Path(__file__).parent / "settable"


class Machine:
    """A wall clock: the one of whatever is started with this environment, from its first moment on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(struct.pack("<q", 0))
        path = os.pathsep.join(filter(None, [str(SETTABLE), os.environ.get("PYTHONPATH")]))
        self.environment = {OFF: str(file), "PYTHONPATH": path}

    def set(self, off: float) -> None:
        """Wrong by so many seconds from now on, in the middle of whatever goes on."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("<q", int(off * 1e9)))

    def microseconds(self) -> int:
        """What its wall clock shows."""
        (off,) = struct.unpack("<q", self._file.read_bytes())
        return (time.time_ns() + int(off)) // 1000
