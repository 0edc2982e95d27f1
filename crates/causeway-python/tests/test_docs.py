"""Every block of Python in the pages runs as it stands there; and the types are what the stubs say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", Path(__file__).parents[1] / "README.md", *sorted((ROOT / "docs").glob("python*.md"))]
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"
BLOCKS = [
    pytest.param(block, id=f"{page.parent.name}-{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_a_page_runs(block: str, tmp_path: Path) -> None:
    for library in re.findall(r"\b(?:import|,) (torch|ray)\b", block):
        pytest.importorskip(library, reason=f"{library} is not installed")
    program = tmp_path / "program.py"
    program.write_text(block)
    subprocess.run([sys.executable, str(program)], check=True, timeout=300, input=b"\n")  # whoever waits for a key has it


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_example_runs(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    command = [sys.executable, str(ROOT / "examples/python/share_tensor.py"), library]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # those of two processes would wait for each other's processors
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=one_thread)
    assert done.returncode == 0, done.stderr
    assert "100 rounds" in done.stdout


def test_the_demo_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "causeway_ipc", "demo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "every byte verified" in done.stdout and "1000 arrays" in done.stdout


@pytest.mark.parametrize("command", ["devices", "demo"])
def test_a_command_whose_output_nobody_takes_says_so_in_a_sentence_or_nothing(command: str) -> None:
    program = [sys.executable, "-m", "causeway_ipc", command]
    with open("/dev/full", "w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "the output could not be written: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_neither_process_of_the_demo_complains_where_only_its_first_line_is_read() -> None:
    program = [sys.executable, "-u", "-m", "causeway_ipc", "demo"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None and demo.stderr is not None
        assert demo.stdout.readline().startswith("device ")
        demo.stdout.close()
        assert (demo.stderr.read(), demo.wait(60)) == ("", 1)


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_module_and_what_uses_it_are_typed(tmp_path: Path) -> None:
    def read(checked: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(CONFIGURATION), "--cache-dir", str(tmp_path)]
        return subprocess.run([*command, str(checked)], capture_output=True, text=True, cwd=tmp_path, timeout=120)

    consumer = tmp_path / "consumer.py"  # away from the source, so that it finds the installed module
    consumer.write_text(Path(__file__).with_name("typed_consumer.py").read_text())
    for checked in [Path(__file__).parents[1] / "python" / "causeway_ipc", consumer]:
        done = read(checked)
        assert done.returncode == 0, done.stdout
    wrong = ["cw.share(cw.empty(3), expires='x')", "cw.empty('abc')", "cw.empty(3, device=4)", "cw.share(cw.empty(3)).tickets", "cw.Channel('x')"]
    consumer.write_text("\n".join(["import causeway_ipc as cw", *wrong]))
    said = read(consumer).stdout
    assert all(f"consumer.py:{line}: error" in said for line in range(2, 2 + len(wrong))), said
