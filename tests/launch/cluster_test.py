from jaxmt.text import word_clusters
from tests import util


def test_clusters_a_text(tmp_path):
  text, out = tmp_path / "text", tmp_path / "clusters"
  text.write_text("the dog runs\nthe cat runs\na dog sits\na cat sits\n" * 3)
  args = (f"--text={text}", "--clusters=3", f"--output={out}")
  done = util.run_program("launch/cluster.py", *args)
  assert done.returncode == 0, done.stderr
  assert "6 words in 3 clusters" in done.stderr
  lines = text.read_text().splitlines()
  found = word_clusters.cluster_words(lines, clusters=3)
  assert out.read_text().splitlines() == word_clusters.to_lines(found)
  bad = util.run_program("launch/cluster.py", f"--text={text}", "--clusters=1")
  assert bad.returncode == 2
  assert bad.stderr == f"cluster.py: {text}: at least 2 clusters\n"
