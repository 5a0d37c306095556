"""What the interop tests share: the program and its answers."""

import json
import os
import subprocess

PROGRAM = os.environ["LOADLINE"]


def loadline(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def inspect(path):
    return json.loads(loadline("inspect", path, "--tensors", "--json"))
