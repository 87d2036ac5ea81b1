"""Run the examples on pages and update their outputs, after messages or numbers have changed.

python docs/outputs.py docs/faq.md docs/guide/*.md

Outputs with ``...`` stay if they still match. Look at the difference before you commit it.
"""

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path

BLOCK = re.compile(r"(?<=^```python\n)>>> .*?(?=^```)", flags=re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def output_of(example, names):
    """Return what an example prints, or the last line of its error."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(example.source, "page", "single"), names)
        except Exception as error:
            last = traceback.format_exception_only(error)[-1]
            printed.write(f"Traceback (most recent call last):\n    ...\n{last}")
    return printed.getvalue()


def with_outputs(block, names):
    lines = []
    for example in doctest.DocTestParser().get_examples(block):
        first, *more = example.source.splitlines()
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        got = output_of(example, names)
        if "..." in example.want and doctest.OutputChecker().check_output(
            example.want, got, OPTIONS
        ):
            got = example.want
        lines += [line or "<BLANKLINE>" for line in got.splitlines()]
    return "\n".join(lines) + "\n\n"


def main():
    here = Path.cwd()
    for page in map(Path, sys.argv[1:]):
        path, names = page.resolve(), {}
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)  # examples write files
            new = BLOCK.sub(lambda found, names=names: with_outputs(found[0], names), text)
            os.chdir(here)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"{page}: new outputs")


if __name__ == "__main__":
    main()
