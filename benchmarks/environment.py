"""The machine that was measured on, made fair to everybody who is measured.

NumPy and SciPy bring an OpenBLAS each, of different ages. One that does not know the processor
falls back to code that is several times slower, and whoever depends on it looks slow as well.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import scipy.linalg.blas  # noqa: F401  (loads the libraries of NumPy and SciPy, to be found)
from threadpoolctl import threadpool_info

from benchmarks.report import Row

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "gpflow",
    "tensorflow",
    "torch",
    "gpytorch",
    "botorch",
)


def make_fair() -> None:
    """Start again with all OpenBLAS libraries told the processor that the newest one sees."""
    seen = [info for info in threadpool_info() if info["internal_api"] == "openblas"]
    if "OPENBLAS_CORETYPE" in os.environ or len({info["architecture"] for info in seen}) < 2:
        return
    newest = max(seen, key=lambda info: _numbers(info["version"]))
    os.environ["OPENBLAS_CORETYPE"] = newest["architecture"]
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])


def describe() -> Row:
    """Return what a reader needs to know of the machine, threads and libraries included."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load at the start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "BLAS": "; ".join(
            f"{info['internal_api']} {info['version']}, {info['num_threads']} threads"
            + (f", {info['architecture']}" if "architecture" in info else "")
            for info in threadpool_info()
        ),
        "OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE", "not set: all agree"),
        "versions": ", ".join(f"{name} {version}" for name, version in _versions().items()),
    }


def peer_threads() -> str:
    """Return the threads of the peers that were used, which have pools of their own."""
    found = []
    if torch := sys.modules.get("torch"):
        mkl = "MKL" if torch.backends.mkl.is_available() else "no MKL"
        found.append(f"PyTorch {torch.get_num_threads()} ({mkl})")
    if tensorflow := sys.modules.get("tensorflow"):
        threads = tensorflow.config.threading.get_intra_op_parallelism_threads()
        found.append(f"TensorFlow {threads or os.cpu_count()} (Eigen)")
    return ", ".join(found) or "none used"


def memory() -> tuple[float, float]:
    """Return the resident set of this process and its peak, in MB (Linux only).

    Not `getrusage`, whose peak is that of the parent if the parent was larger.
    """
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    resident, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return resident, peak


def has(package: str) -> bool:
    """Return whether `package` is installed."""
    return package in _versions()


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
