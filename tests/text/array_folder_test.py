"""Folders of arrays: replaced at once, and no room is found out first."""

import errno
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.text import array_folder, files
from tests import util


def write(path, value):
  with array_folder.open_writer(str(path)) as writer:
    writer.append("a", np.array([value]))


def read(path):
  folder = array_folder.open_folder(str(path), verify=True)
  return folder.array("a").tolist()


def test_an_old_folder_is_never_moved_away(tmp_path, monkeypatch):
  write(tmp_path / "t", 1)
  rename = os.rename

  def checked(old, new):
    assert os.fspath(old) != str(tmp_path / "t"), "there is no table now"
    rename(old, new)

  monkeypatch.setattr(array_folder.os, "rename", checked)
  write(tmp_path / "t", 2)
  assert read(tmp_path / "t") == [2]
  assert os.listdir(tmp_path) == ["t"]


@pytest.mark.parametrize("name", ["notes.md", "icon.png", ".git", "sub"])
def test_a_folder_with_files_of_others_is_not_replaced(tmp_path, name):
  write(tmp_path / "t", 1)
  (tmp_path / "t" / name).mkdir()
  with pytest.raises(InputError, match=f"has '{name}', which would be lost"):
    write(tmp_path / "t", 2)
  assert read(tmp_path / "t") == [1]
  assert (tmp_path / "t" / name).is_dir()
  assert os.listdir(tmp_path) == ["t"]


def test_without_exchange_folders_are_replaced_too(tmp_path, monkeypatch):
  monkeypatch.setattr(array_folder, "_exchange", lambda one, other: False)
  for value in (1, 2):
    write(tmp_path / "t", value)
    assert read(tmp_path / "t") == [value]
  assert os.listdir(tmp_path) == ["t"]


def die_between_renames(path):
  """Replaces a folder without exchange, and dies in the middle."""
  script = (
    "import os, signal, sys, numpy as np\n"
    "from jaxmt.text import array_folder\n"
    "array_folder._exchange = lambda one, other: False\n"
    "rename = os.rename\n"
    "def last(*names):\n"
    "  rename(*names)\n"
    "  os.kill(os.getpid(), signal.SIGKILL)\n"
    "array_folder.os.rename = last\n"
    "with array_folder.open_writer(sys.argv[1]) as writer:\n"
    "  writer.append('a', np.array([2]))\n"
  )
  done = subprocess.run(
    [sys.executable, "-c", script, str(path)], cwd=util.ROOT
  )
  assert done.returncode == -9 and not path.exists()


@pytest.mark.parametrize("opened_by", ["reader", "look", "writer"])
def test_a_kill_between_two_renames_loses_no_folder(tmp_path, opened_by):
  table = tmp_path / "t"
  write(tmp_path / "other", 7)
  write(table, 1)
  die_between_renames(table)
  if opened_by == "look":
    assert array_folder.is_folder(str(table))
  if opened_by == "writer":
    write(table, 3)
  assert read(table) == [3 if opened_by == "writer" else 1]
  assert not list(tmp_path.glob(".*.old"))
  with pytest.raises(InputError, match="no such file"):
    read(tmp_path / "absent")


def test_a_reader_may_recover_while_a_writer_replaces(tmp_path, monkeypatch):
  monkeypatch.setattr(array_folder, "_exchange", lambda one, other: False)
  write(tmp_path / "t", 1)
  rename, seen = os.rename, []

  def read_in_between(old, new):
    rename(old, new)
    if str(new).endswith(".old") and len(seen) < 3:
      seen.append(read(tmp_path / "t"))

  monkeypatch.setattr(array_folder.os, "rename", read_in_between)
  write(tmp_path / "t", 2)
  assert seen == [[1]] * 3
  assert read(tmp_path / "t") == [2]
  assert os.listdir(tmp_path) == ["t"]


def test_a_link_to_a_folder_stays_one(tmp_path):
  write(tmp_path / "t", 1)
  (tmp_path / "link").symlink_to("t")
  write(tmp_path / "link", 2)
  assert (tmp_path / "link").is_symlink()
  assert read(tmp_path / "t") == [2]


def test_a_planted_folder_is_not_used(tmp_path, monkeypatch):
  monkeypatch.setattr(files.secrets, "token_hex", lambda size: "guessed")
  (tmp_path / "elsewhere").mkdir()
  (tmp_path / ".t.guessed.tmp").symlink_to("elsewhere")
  with pytest.raises(InputError, match="t: file exists"):
    write(tmp_path / "t", 1)
  assert not list((tmp_path / "elsewhere").iterdir())


def test_mapped_scratch_has_its_space_before_it_is_used(tmp_path, monkeypatch):
  array = array_folder.scratch_array(str(tmp_path), "a", 1000, np.float64)
  assert array.shape == (1000,) and not array.any()
  assert os.stat(tmp_path / "a.raw").st_blocks * 512 >= 8000  # no hole
  array[:] = 1

  def full(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  monkeypatch.setattr(array_folder.os, "posix_fallocate", full)
  with pytest.raises(InputError, match=r"b\.raw: no space left on device"):
    array_folder.scratch_array(str(tmp_path), "b", 1000, np.float64)


def packed(**members):
  """An npz file of members given as bytes or arrays."""
  out = io.BytesIO()
  with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content in members.items():
      if isinstance(content, np.ndarray):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, content, allow_pickle=True)
        content = buffer.getvalue()
      archive.writestr(f"{name}.npy", content)
  return out.getvalue()


def header(shape, kind="<i8"):
  """An array file that promises more than it has."""
  out = io.BytesIO()
  about = {"descr": kind, "fortran_order": False, "shape": shape}
  np.lib.format.write_array_header_1_0(out, about)
  return out.getvalue() + b"12345678"


def test_arrays_in_an_npz_file(tmp_path):
  path = tmp_path / "a.npz"
  np.savez_compressed(path, a=np.arange(6).reshape(2, 3), b=np.zeros(0))
  found = array_folder.read_npz(str(path))
  assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
  assert found["b"].shape == (0,)


@pytest.mark.parametrize(
  "members, cause",
  [
    ({"a": header((10**12,))}, "not a file of arrays"),
    ({"a": header((-1,))}, "not a file of arrays"),
    ({"a": header((2**63, 2**63))}, "not a file of arrays"),
    ({"a": np.array([{}])}, "not a file of arrays"),
    ({"a": b"text"}, "not a file of arrays"),
    ({"a": np.zeros(5 << 20, np.int64), "b": np.zeros(30 << 20, np.int64)},
     "unpacks to over 256 MiB"),
  ],
)  # fmt: skip
def test_npz_files_that_promise_too_much(tmp_path, members, cause):
  path = tmp_path / "a.npz"
  path.write_bytes(packed(**members))
  with pytest.raises(InputError, match=cause):
    array_folder.read_npz(str(path))


@pytest.mark.parametrize(
  "entry, cause",
  [
    ('"a.txt": {"bytes": Infinity, "crc32": 1}', "not a manifest"),
    ('"a.txt": {"bytes": 2}', "not a manifest"),
    ('"a.txt": 5', "not a manifest"),
    ('"../a.txt": {"bytes": 2, "crc32": 1}', "in another folder"),
    ('"/etc/passwd": {"bytes": 2, "crc32": 1}', "in another folder"),
    ('"%s": {"bytes": 2, "crc32": 1}' % ("9" * 256), "no file can have"),
    ('"a\\nb": {"bytes": 2, "crc32": 1}', "no file can have"),
  ],
)
def test_manifests_that_are_none(tmp_path, entry, cause):
  (tmp_path / "a.txt").write_text("b\n")
  text = '{"files": {' + entry + "}}"
  (tmp_path / array_folder.MANIFEST).write_text(text)
  with pytest.raises(InputError, match=cause):
    array_folder.open_folder(str(tmp_path), verify=True)
