"""The machine that figures were measured on, in one line. Nothing in it names the machine or its user."""

from __future__ import annotations

import os
import platform
import sysconfig
from pathlib import Path


def describe_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Processor, cores that this process may use, Python and kernel."""
    processor = platform.processor() or platform.machine()
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    python = f"{platform.python_implementation()} {platform.python_version()}{_how_built()}"
    return f"{processor}, {usable_cores()} cores, {python}, {platform.system()} {platform.release()}"


def _how_built() -> str:
    """An interpreter that was built without profile-guided optimisation is a quarter slower: worth a remark."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    return " (built without --enable-optimizations)" if arguments and "--enable-optimizations" not in arguments else ""


def usable_cores() -> int:
    """Cores that the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
