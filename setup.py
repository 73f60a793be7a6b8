"""Builds the Python module with CMake, for pip. CMAKE_ARGS in the environment goes to CMake."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class BuildWithCMake(build_ext):
    def build_extension(self, extension: Extension) -> None:
        build = Path(self.build_temp).resolve()
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DTRITAX_TESTS=OFF", "-DTRITAX_BENCHMARKS=OFF",
                   f"-DPython_EXECUTABLE={sys.executable}", *shlex.split(os.environ.get("CMAKE_ARGS", ""))]
        subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *options], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "tritax_python"], check=True)
        target = Path(self.get_ext_fullpath(extension.name)).resolve().parent
        target.mkdir(parents=True, exist_ok=True)
        for module in (build / "python" / "tritax").glob("_core.*.so"):
            shutil.copy2(module, target)


version = re.search(r"project\(tritax VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
assert version is not None, "CMakeLists.txt names the version"
# Here and not in pyproject.toml, which setuptools before 61 (Ubuntu 22.04) does not read.
setup(
    name="tritax",
    version=version[1],
    description="Which overlap pattern, tile and CU split, and where does the time go?",
    license="Apache-2.0",
    python_requires=">=3.9",
    install_requires=["numpy"],
    extras_require={"frames": ["pandas"]},
    packages=["tritax"],
    package_dir={"": "python"},
    package_data={"tritax": ["_core.pyi", "py.typed"]},
    ext_modules=[Extension("tritax._core", sources=[])],
    cmdclass={"build_ext": BuildWithCMake},
)
