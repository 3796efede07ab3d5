"""The doctor's words, on a machine with fakes of everything and on one with nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness import doctor
from tests.backends import fakes

GOLDEN = Path(__file__).parent / "golden"
NOTHING = {"found": False, "path": "", "version": "", "error": ""}


def module(path: str, version: str, error: str = "") -> dict:
    return {"found": True, "path": path, "version": version, "error": error}


def answer(**modules: dict) -> dict:
    return {"python": "3.11.7", "executable": "/opt/v/bin/python", "modules": modules, "device": None}


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)  # the test machine's own GPU does not answer
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: "9.27.1")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)


def golden(name: str, text: str) -> None:
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_machine_that_has_everything(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", fakes.path_with_fakes())
    triton = tmp_path / "triton"
    (triton / "backends/nvidia/bin").mkdir(parents=True)
    for name in ("ptxas", "nvdisasm"):
        (triton / "backends/nvidia/bin" / name).write_text("", encoding="utf-8")
    has = answer(
        torch=module("/opt/v/torch/__init__.py", "2.13.0"), triton=module(f"{triton}/__init__.py", "3.7.1"),
        pytest=module("/opt/v/pytest/__init__.py", "9.2.0"),
    )  # fmt: skip
    text = doctor.doctor(answer=has, environ={"CUDA_VISIBLE_DEVICES": "0"})
    golden("doctor_everything.txt", text.replace(str(triton), "<triton>"))


def test_a_machine_that_has_nothing(monkeypatch):
    def missing(name):
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", missing)
    text = doctor.doctor(fakes.answering({}), answer(torch=NOTHING, triton=NOTHING, pytest=NOTHING), {})
    golden("doctor_nothing.txt", text)


def test_a_broken_triton_is_no_compiler():
    broken = module("/opt/v/triton/__init__.py", "3.7.1", "ImportError: GLIBC_2.38 not found")
    text = doctor.doctor(fakes.answering({}), answer(triton=broken), {})
    assert "--  triton          /opt/v/triton/__init__.py cannot be imported: ImportError: GLIBC_2.38 not found" in text
    assert "--  backend aot     needs triton in this interpreter" in text


def test_a_triton_without_ptxas_still_compiles_for_amd():
    text = doctor.doctor(fakes.answering({}), answer(triton=module("/opt/v/triton/__init__.py", "")), {})
    assert "ok  backend aot     hip:gfx<...> only: this triton carries no ptxas; set TRITON_PTXAS_PATH" in text
    assert "ok  triton          unknown version (/opt/v/triton/__init__.py)" in text


def test_devices_hidden_from_this_process_are_explained():
    run = fakes.answering({"nvidia-smi -L": fakes.text("nvidia_smi_L.txt")})
    text = doctor.doctor(run, answer(), {"CUDA_VISIBLE_DEVICES": ""})
    assert "--  backend cuda    nvidia-smi lists no device for this process, CUDA_VISIBLE_DEVICES=;" in text


def test_a_device_without_telemetry_can_still_measure():
    run = fakes.answering({"nvidia-smi -L": fakes.text("nvidia_smi_L.txt")})
    text = doctor.doctor(run, answer(), {})
    assert "ok  backend cuda    1 = GPU-8932f937" in text
    assert "--  telemetry       cuda: NVML is not used: nvidia-ml-py is not installed" in text
    assert "cells run without it" in text


def test_this_interpreter_really_answers():
    assert doctor.probe()["executable"] == sys.executable
