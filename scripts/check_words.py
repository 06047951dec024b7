#!/usr/bin/env python3
"""Checks that the project's text avoids words that readers could not follow (CONTRIBUTING.md, "Language").

check_words.py           exit 1 and one line per fault: file, line, the word and what to say instead
check_words.py --list    prints the words

Text is comments and string literals of C++ and CUDA, whole Python and shell scripts, and Markdown. Names of schedules, keys of
files and identifiers are not text. A line of prose in Markdown has at most 120 columns (tables, code and pictures may be longer),
and a comment in C++ or CUDA at most 100, tests excepted.
Commit subjects since the last tag v*, or since this check was added where there is no tag,
have at most 72 characters.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = {  # a word or phrase -> what to say instead
    "whoever": "the caller, the rank, the process",
    "nobody": "no rank, no process, nothing",
    "somebody": "a rank, a process, a user",
    "everybody": "all ranks, all processes",
    "dearest": "bottleneck, most expensive",
    "gives way": "is replaced by, is dropped",
    "by chance": "randomly",
    "cannot be": "is not possible; must be X (got Y)",
    "hangs on": "depends on, is most sensitive to",
    "as it is written": "as written, unchanged",
    "foretold": "predicted",
    "sharpest": "most accurate",
    "paced ranks": "emulated ranks",
    "beside each other": "side by side, next to each other",
    "let fall": "omitted",
    "dealt": "assigned",
    "mend": "fix, repair",
}
ALLOWED = {  # file -> words that it has to contain
    "scripts/check_words.py": set(WORDS),
    "CONTRIBUTING.md": set(WORDS),
    "scenarios/GLOSSARY.md": set(WORDS),
}
LONGEST_SUBJECT = 72
WIDEST_PROSE = 120
WIDEST_COMMENT = 100
PATTERN = re.compile(r"(?<![\w/.-])(" + "|".join(re.escape(word) for word in WORDS) + r")(?![\w(/.=-]*[\w(])", re.I)
CANNOT_BE_DONE = re.compile(r"cannot be(\s+\w|\s*$)", re.I)  # "cannot be read" is plain; "3 workers cannot be" is not
CODE_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


def texts(path: pathlib.Path):
    """(line number, text) of what people read in a file."""
    whole = path.read_text(errors="replace")
    if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
        for match in CODE_TEXT.finditer(whole):
            first = whole.count("\n", 0, match.start()) + 1
            for number, line in enumerate(match[0].split("\n"), first):
                if not line.lstrip().startswith("#include"):
                    yield number, line
    else:
        yield from enumerate(whole.split("\n"), 1)


def files():
    for name in git("ls-files").stdout.split():
        path = ROOT / name
        script = name.startswith("scripts/") and "." not in path.name
        if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".py", ".md"} or script or path.name == "CMakeLists.txt":
            if path.is_file():
                yield name, path


def word_faults():
    for name, path in files():
        for number, line in texts(path):
            for match in PATTERN.finditer(line):
                word = match[1].lower()
                if CANNOT_BE_DONE.match(line, match.start()):
                    continue
                if word not in ALLOWED.get(name, ()):
                    yield f'{name}:{number}: "{match[1]}": write {WORDS[word]}'


def width_faults():
    for name, path in files():
        if path.suffix != ".md":
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > WIDEST_PROSE and not line.startswith(("|", "    ", "\t", "![")):
                yield f"{name}:{number}: a line of {len(line)} columns: wrap it at {WIDEST_PROSE}"


def comment_faults():
    for name, path in files():
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"} or name.startswith("tests/"):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > WIDEST_COMMENT and re.search(r"(^|\s)// ", line):
                yield f"{name}:{number}: a comment that ends at column {len(line)}: wrap it at {WIDEST_COMMENT}"


def subject_faults():
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        print("words: commit subjects are not checked: this clone has no history")
        return
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v*").stdout.strip()
    added = git("log", "--diff-filter=A", "--format=%H", "--", "scripts/check_words.py").stdout.split()
    since = tag or (added[-1] if added else "HEAD")
    for line in git("log", "--no-merges", "--format=%h %s", f"{since}..HEAD").stdout.splitlines():
        commit, subject = line.split(" ", 1)
        if len(subject) > LONGEST_SUBJECT:
            yield f'commit {commit}: its subject has {len(subject)} characters, at most {LONGEST_SUBJECT}: "{subject}"'


def main(arguments):
    if arguments == ["--list"]:
        for word, instead in WORDS.items():
            print(f"{word}: {instead}")
        return 0
    if arguments:
        print(__doc__)
        return 0 if arguments in (["--help"], ["-h"]) else 2
    found = [*word_faults(), *width_faults(), *comment_faults(), *subject_faults()]
    print("\n".join(found) or "words: clean")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
