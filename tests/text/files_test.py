import gzip
import io
import os
import stat
import sys
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.errors import InputError
from jaxmt.text import files
from tests.text import text_strategies


@pytest.fixture
def folder(tmp_path):
  return lambda name: str(tmp_path / name)


def put(path, data):
  with open(path, "wb") as out:
    out.write(data)
  return path


def fake_stdin(monkeypatch, data):
  raw = io.BufferedReader(io.BytesIO(data))
  monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
  return raw


@given(text_strategies.lines, st.sampled_from(["x", "x.gz"]))
def test_lines_survive_byte_for_byte(lines, name):
  with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/{name}"
    files.write_lines(path, lines)
    assert files.read_lines(path) == lines
    assert list(files.stream_lines(path)) == list(enumerate(lines, start=1))
    expected = "".join(line + "\n" for line in lines).encode()
    assert files.read_bytes(path) == expected
    assert b"".join(files.stream_blocks(path, size=3)) == expected
    with open(path, "rb") as raw:
      content = raw.read()
    assert (gzip.decompress(content) if name == "x.gz" else content) == expected
    assert os.listdir(folder) == [name]


@given(st.binary(max_size=60))
def test_any_bytes_give_lines_or_an_error_with_its_line(data):
  with tempfile.TemporaryDirectory() as folder:
    path = put(f"{folder}/x", data)
    bad = [
      number
      for number, line in enumerate(data.split(b"\n"), start=1)
      if not _decodes(line)
    ]
    for read in (files.read_lines, lambda p: list(files.stream_lines(p))):
      if bad and data[:2] != b"\x1f\x8b":
        with pytest.raises(InputError) as caught:
          read(path)
        assert (caught.value.path, caught.value.line) == (path, bad[0])
      elif not bad:
        read(path)
    if not bad:
      assert "\n".join(files.read_lines(path)).encode() == data.removesuffix(
        b"\n"
      )


def _decodes(line):
  try:
    line.decode()
  except UnicodeDecodeError:
    return False
  return True


@pytest.mark.parametrize(
  ("data", "lines"),
  [
    (b"", []),
    (b"\n", [""]),
    (b"a", ["a"]),
    (b"a\n", ["a"]),
    (b"a\n\n", ["a", ""]),
    (b"a\r\nb\x0cc\r", ["a\r", "b\x0cc\r"]),
    ("a\u2028b\n\x85\x1c".encode(), ["a\u2028b", "\x85\x1c"]),
  ],
)
def test_what_a_line_is(folder, data, lines):
  for packed in (data, gzip.compress(data)):
    path = put(folder("x"), packed)
    assert files.read_lines(path) == lines
    assert [line for _, line in files.stream_lines(path)] == lines


def test_gzip_is_known_by_content_not_name(folder):
  assert files.read_lines(put(folder("a.gz"), b"plain\n")) == ["plain"]
  packed = gzip.compress(b"one\n") + gzip.compress(b"two\n")
  assert files.read_lines(put(folder("a.txt"), packed)) == ["one", "two"]


def test_same_content_gives_same_gzip_bytes(folder):
  for name in ("a.gz", "b.gz"):
    files.write_lines(folder(name), ["中文"] * 50)
  with open(folder("a.gz"), "rb") as one, open(folder("b.gz"), "rb") as two:
    assert one.read() == two.read()


def test_every_truncation_of_gzip_is_an_error(folder):
  packed = gzip.compress("一 二 三\n".encode() * 40, mtime=0)
  for cut in range(2, len(packed)):
    path = put(folder("x.gz"), packed[:cut])
    for read in (files.read_lines, files.stream_lines, files.stream_blocks):
      with pytest.raises(InputError, match=r"x\.gz: "):
        list(read(path))


def test_flipped_bits_in_gzip_never_pass_for_text(folder):
  text = "一 二 三\n" * 20
  packed = gzip.compress(text.encode(), mtime=0)
  errors = 0
  for place in range(2, len(packed)):
    spoilt = bytearray(packed)
    spoilt[place] ^= 0x55
    path = put(folder("x.gz"), bytes(spoilt))
    try:
      assert files.read_text(path) == text  # only header remarks may change
    except InputError as error:
      assert error.path == path
      errors += 1
  assert errors > len(packed) / 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bad_utf8_names_file_and_line(folder, pack):
  path = put(folder("x"), pack(b"good\n\nca\xff\xfe\nx\xff\n"))
  with pytest.raises(InputError) as caught:
    files.read_lines(path)
  assert str(caught.value) == f"{path}:3: not UTF-8: byte 0xff"
  seen = []
  with pytest.raises(InputError) as caught:
    seen.extend(files.stream_lines(path))
  assert str(caught.value) == f"{path}:3: not UTF-8: byte 0xff"


def test_missing_file_and_folder(folder, tmp_path):
  for read in (files.read_lines, lambda p: list(files.stream_lines(p))):
    with pytest.raises(InputError, match="nothing: no such file"):
      read(folder("nothing"))
    with pytest.raises(InputError, match="is a directory"):
      read(str(tmp_path))
  with pytest.raises(InputError, match="no such file"):
    files.write_lines(folder("no/such/folder"), ["a"])
  with pytest.raises(InputError, match="is a directory"):
    files.write_lines(str(tmp_path), ["a"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_dash_reads_standard_input(monkeypatch, pack):
  data = pack("甲\n乙".encode())
  fake_stdin(monkeypatch, data)
  assert files.read_lines("-") == ["甲", "乙"]
  raw = fake_stdin(monkeypatch, data)
  assert list(files.stream_lines("-")) == [(1, "甲"), (2, "乙")]
  assert not raw.closed


def test_bad_standard_input_is_named(monkeypatch):
  fake_stdin(monkeypatch, b"a\n\xff")
  with pytest.raises(InputError, match="-:2: not UTF-8"):
    files.read_lines("-")


def test_dash_writes_standard_output_after_what_was_printed(monkeypatch):
  raw = io.BytesIO()
  monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
  print("first")
  files.write_lines("-", ["中"])
  assert raw.getvalue() == "first\n中\n".encode()


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_failure_keeps_the_old_file_and_leaves_nothing(folder, tmp_path, name):
  files.write_lines(folder(name), ["old"])
  with (
    pytest.raises(RuntimeError),
    files.atomic_writer(folder(name)) as out,
  ):
    out.write(b"new")
    raise RuntimeError
  assert files.read_lines(folder(name)) == ["old"]
  assert os.listdir(tmp_path) == [name]


def test_nothing_is_seen_before_the_end(folder):
  with files.atomic_writer(folder("x")) as out:
    out.write(b"new\n")
    out.flush()
    assert not os.path.exists(folder("x"))
  assert files.read_lines(folder("x")) == ["new"]


def test_devices_are_not_replaced_and_links_are_followed(folder):
  files.write_lines("/dev/null", ["a"])
  assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
  files.write_lines(folder("real"), ["old"])
  os.symlink(folder("real"), folder("link"))
  files.write_lines(folder("link"), ["new"])
  assert os.path.islink(folder("link"))
  assert files.read_lines(folder("real")) == ["new"]


def test_a_newline_in_a_line_is_refused(folder):
  with pytest.raises(ValueError, match="newline"):
    files.write_lines(folder("x"), ["a\nb"])
  assert not os.path.exists(folder("x"))


def test_a_planted_link_is_not_written_through(folder, tmp_path, monkeypatch):
  monkeypatch.setattr(files.secrets, "token_hex", lambda size: "guessed")
  victim = put(folder("victim"), b"mine")
  os.symlink(victim, folder(".x.guessed.tmp"))
  with pytest.raises(InputError, match="x: file exists"):
    files.write_lines(folder("x"), ["new"])
  assert files.read_lines(victim) == ["mine"]
  assert not os.path.exists(folder("x"))


def test_temporary_names_differ_and_fit(folder):
  target = files.pathlib.Path(folder("\u4e2d" * 80))  # 240 bytes
  names = {files.hidden_name(target).name for _ in range(20)}
  assert len(names) == 20
  assert all(len(name.encode()) <= 255 for name in names)
  files.write_lines(str(target), ["long name"])
  assert files.read_lines(str(target)) == ["long name"]


def test_new_files_have_the_usual_permissions(folder):
  files.write_lines(folder("x"), ["a"])
  with open(folder("y"), "w"):
    pass
  assert os.stat(folder("x")).st_mode == os.stat(folder("y")).st_mode


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_without_end_is_refused(folder, monkeypatch, pack):
  monkeypatch.setattr(files, "LONGEST_LINE", 1000)
  monkeypatch.setattr(files, "_BLOCK", 64)
  fine = b"a" * 1000 + b"\n" + b"b" * 1000
  assert files.read_bytes(put(folder("x"), pack(fine))) == fine
  assert len(list(files.stream_lines(folder("x")))) == 2
  path = put(folder("y"), pack(b"short\n" + b"a" * 2000 + b"\n"))
  readers = [
    lambda path: list(files.stream_lines(path)),
    lambda path: list(files.stream_blocks(path, size=64)),
  ]
  if pack is gzip.compress:  # 1 GB of zeros is 1 MB of gzip
    readers.append(files.read_bytes)
  for read in readers:
    with pytest.raises(InputError, match="y:2: line of over"):
      read(path)


def test_devices_without_an_end_are_refused(monkeypatch):
  monkeypatch.setattr(files, "LONGEST_LINE", 1 << 23)
  with pytest.raises(InputError, match="/dev/zero:1: line of over"):
    files.read_lines("/dev/zero")


def test_full_devices_and_closed_streams_are_named(monkeypatch):
  with pytest.raises(InputError, match="/dev/full: no space left"):
    files.write_lines("/dev/full", ["a"])
  with open("/dev/full", "w") as full:
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(InputError, match="-: no space left"):
      files.write_lines("-", ["a"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
  monkeypatch.setattr(sys, "stdout", None)
  with pytest.raises(InputError, match="-: standard output is closed"):
    files.write_lines("-", ["a"])
  monkeypatch.setattr(sys, "stdin", None)
  for read in (files.read_bytes, lambda path: list(files.stream_lines(path))):
    with pytest.raises(InputError, match="-: standard input is closed"):
      read("-")


@pytest.mark.parametrize(
  "text", ["{", "", "[" * 100_000, "1" * 5000, "\x00", '{"a": nul}']
)
def test_what_is_not_json_is_refused(folder, text):
  with pytest.raises(InputError, match=r"x(:1)?: not JSON"):
    files.read_json(put(folder("x"), text.encode()))
  assert files.read_json(put(folder("x"), b'{"a": [1]}')) == {"a": [1]}


def test_a_small_file_of_endless_lines_is_refused(folder, monkeypatch):
  monkeypatch.setattr(files, "LARGE", 1 << 16)
  path = put(folder("bomb"), gzip.compress(b"\n" * (1 << 23)))
  for read in (files.read_bytes, files.read_lines):
    with pytest.raises(InputError, match="bomb: unpacks to over 200 times"):
      read(path)
  with pytest.raises(InputError, match="unpacks to over 200 times"):
    list(files.stream_blocks(path, size=1 << 16))
  text = b"".join(
    b"%d the same words again and again\n" % n for n in range(9999)
  )
  assert len(text) > files.LARGE
  for data in (gzip.compress(text), text, b"\n" * (1 << 20)):
    assert len(files.read_bytes(put(folder("fine"), data))) >= len(data)


def test_a_folder_is_swept_of_what_killed_writers_left(tmp_path):
  stale = ".results.json.0123456789abcdef.tmp"
  for name in (stale, ".other.tmp", "x.tmp", ".x.0123.tmp"):
    (tmp_path / name).write_text("x")
  (tmp_path / ".folder.0123456789abcdef.tmp").mkdir()
  files.remove_stale(str(tmp_path))
  assert not (tmp_path / stale).exists()
  assert len(list(tmp_path.iterdir())) == 4
  files.remove_stale(str(tmp_path / "absent"))
