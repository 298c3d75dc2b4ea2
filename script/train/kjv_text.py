"""The King James Bible as plain ASCII text, split by chapter.

1189 chapters, 31102 verses, from the Debian packages bible-kjv (the reader) and bible-kjv-text. The
text itself is in the public domain: its copyright, of 1611, has expired. A chapter is a line
"Genesis 1", a line "1 In the beginning ..." per verse, and an empty line. Every twentieth chapter,
from the eleventh, is for validation.
"""
import re
import subprocess

READER = "bible"
DATA_FOLDER = "/usr/lib/"
EVERYTHING = "Gen1:1-Rev22:21"

_VERSE = re.compile(r"^ {1,3}(\d+) (.*)$")
_HEADING = re.compile(r"^[A-Za-z0-9 ]+ \d+$")


def read_chapters():
    """Returns the chapters as the reader prints them, each a text that ends with an empty line."""
    printed = subprocess.run([READER, "-p", DATA_FOLDER, EVERYTHING], stdout=subprocess.PIPE,
                             check=True).stdout.decode("ascii")
    chapters, after_blank = [], True  # a chapter: [heading, verse, verse, ...]
    for line in printed.split("\n"):
        verse = _VERSE.match(line)
        if verse and chapters:
            chapters[-1].append(f"{verse.group(1)} {verse.group(2)}")
        elif _HEADING.match(line) and after_blank:
            chapters.append([line.strip()])
        elif line.strip():
            chapters[-1][-1] += " " + line.strip()
        after_blank = not line.strip()
    return ["\n".join(lines) + "\n\n" for lines in chapters]


def load_split():
    """Returns the texts for training and for validation as bytes; a byte is an ASCII code."""
    chapters = read_chapters()
    train = "".join(text for i, text in enumerate(chapters) if i % 20 != 10)
    valid = "".join(text for i, text in enumerate(chapters) if i % 20 == 10)
    return train.encode("ascii"), valid.encode("ascii")
