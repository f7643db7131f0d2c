"""``nox``: the tests that need no PyTorch, on every Python that is installed."""

import os
import shutil
import subprocess

import nox

nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True


def _let_pyenv_show_every_python() -> None:
    """pyenv's python3.12 answers only while a 3.12 is selected: select them all."""
    if not shutil.which("pyenv"):
        return
    listed = ["pyenv", "versions", "--bare", "--skip-aliases"]
    names = subprocess.run(listed, capture_output=True, text=True).stdout.split()
    os.environ["PYENV_VERSION"] = ":".join([*names, "system"])


_let_pyenv_show_every_python()


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The whole suite from a built wheel, without tests/parity: PyTorch is absent."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", "-o", "pythonpath=tests", *session.posargs)
