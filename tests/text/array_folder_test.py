"""Folders of arrays: replaced at once, and no room is found out first."""

import errno
import os

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.text import array_folder, files


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


def test_without_exchange_folders_are_replaced_too(tmp_path, monkeypatch):
  monkeypatch.setattr(array_folder, "_exchange", lambda one, other: False)
  for value in (1, 2):
    write(tmp_path / "t", value)
    assert read(tmp_path / "t") == [value]
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
