"""Bytes to lines: what other systems write is read rightly or refused with the way out."""

import pytest

from harness.foreign import reading
from harness.foreign.entries import ForeignError

TABLE = "Operator: mm  Performance Test (dtype=torch.float16, mode=kernel,level=core)\nSUCCESS 1\n"


def read(tmp_path, data, name="run.log", **more):
    path = tmp_path / name
    path.write_bytes(data)
    return reading.read(path, **more)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_refused_with_the_way_out(tmp_path, encoding):
    """golang/go#58576: an empty report and exit 0."""
    with pytest.raises(ForeignError, match=r"run\.log: is UTF-16 .*iconv -f UTF-16 -t UTF-8"):
        read(tmp_path, TABLE.encode(encoding))


def test_a_byte_order_mark_and_crlf_are_read(tmp_path):
    found = read(tmp_path, b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode())
    assert found.lines == tuple(TABLE.splitlines())
    assert not found.torn


def test_colours_are_taken_off(tmp_path):
    found = read(tmp_path, b"\x1b[31mFAILED\x1b[0m: x\n\x1b[1;32mSUCCESS\x1b[0m\n\x1b]0;title\x07end\n")
    assert found.lines == ("FAILED: x", "SUCCESS", "end")


def test_a_last_line_without_end_may_be_torn(tmp_path):
    found = read(tmp_path, b"one\ntwo\nthr")
    assert (found.torn, found.cut(3), found.cut(2), found.place(3)) == (True, True, False, f"{tmp_path}/run.log:3")


def test_binary_files_are_passed_over_unless_they_are_named_as_text(tmp_path):
    assert read(tmp_path, b"\x7fELF\0\1\2", "kernel.cubin") is None
    assert read(tmp_path, b"\xff\xfa\x80", "tuner.db") is None
    with pytest.raises(ForeignError, match=r"run\.log:2: a NUL byte; convert"):
        read(tmp_path, b"one\ntw\0o\n")
    with pytest.raises(ForeignError, match=r"run\.log:2: no UTF-8; convert"):
        read(tmp_path, b"one\ntw\xe9o\n")
    with pytest.raises(ForeignError, match=r"kernel\.cubin:1: a NUL byte"):
        read(tmp_path, b"\x7fELF\0\1\2", "kernel.cubin", wanted=True)


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(ForeignError, match=r"x\.log: Is a directory; make it readable"):
        (tmp_path / "x.log").mkdir()
        reading.read(tmp_path / "x.log")


def test_an_empty_file_has_no_lines(tmp_path):
    assert read(tmp_path, b"").lines == ()
