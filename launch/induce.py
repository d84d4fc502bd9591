r"""Compares starts of unsupervised parsers over languages, beside a table.

    python launch/induce.py --config=configs/induction.py --workdir=D \
        --config.data=FOLDER

FOLDER holds LANGUAGE.train.gz and LANGUAGE.test.gz. Every run is a file of D;
started again, the study continues where it stopped. Cells are directed
accuracies of test sentences of at most 10 words, and of all; without
punctuation.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import json

from absl import flags
from ml_collections import config_flags

from jaxmt.experiment import induction_study
from jaxmt.report import text_tables
from jaxmt.runtime import progress

_CONFIG = config_flags.DEFINE_config_file("config", None, "settings")
_WORKDIR = flags.DEFINE_string("workdir", "", "folder of the results")
_JSON = flags.DEFINE_bool("json", False, "print the table as JSON")
_MARKDOWN = flags.DEFINE_bool("markdown", False, "print the table as Markdown")


def main(argv: list[str]) -> None:
  """Runs what is missing and prints the table."""
  del argv
  config = _CONFIG.value
  program.required(config=config, workdir=_WORKDIR.value)
  work = induction_study.runs(config)
  program.required(**{"config.data": config.data})
  results = []
  for run, result in induction_study.execute(work, config.data, _WORKDIR.value):
    results.append((run, result))
    progress.say(
      f"{len(results)}/{len(work)} {run.language} {run.name}:"
      f" {result['short_words_accuracy']:.1f}/{result['words_accuracy']:.1f}"
    )
  rows = induction_study.table(results, config.published.to_dict())
  if _JSON.value:
    print(json.dumps(rows))
  else:
    print(
      text_tables.markdown(rows) if _MARKDOWN.value else text_tables.text(rows)
    )


if __name__ == "__main__":
  program.run(main)
