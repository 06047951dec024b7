#!/usr/bin/env python3
"""Checks that programs contain our kernels for compute capability 8.0, 9.0 and 10.0, and PTX for later ones: kernels.py BUILD

Exit code 77 (skipped) if the build has none: no nvcc, or no CUDA libraries of LibTorch.
Read from the program's own bytes, because cuobjdump is not in every toolkit: a fat binary is a header (magic, version,
bytes of header, bytes of all entries), then entries (kind: 1 PTX, 2 machine code; bytes of header, bytes of payload; the
architecture at byte 28), as nvcc 13.0 writes them.
"""
import pathlib
import re
import struct
import sys

MAGIC, PTX, CODE = struct.pack("<I", 0xBA55ED50), 1, 2
WANTED = {(CODE, 80), (CODE, 90), (CODE, 100), (PTX, 100)}


def fat_binaries(data):
    """The (kind, architecture) of each fat binary's entries."""
    for match in re.finditer(re.escape(MAGIC), data):
        if match.start() + 16 > len(data):
            continue
        version, header, size = struct.unpack_from("<HHQ", data, match.start() + 4)
        at, found = match.start() + header, set()
        end = at + size
        if version != 1 or header != 16 or end > len(data):
            continue  # the same four bytes in another part of the program
        while at < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, at)
            found.add((kind, struct.unpack_from("<I", data, at + 28)[0]))
            at += entry_header + entry_size
        yield found


def main(build):
    files = sorted(build.glob("exec/kernels/*.o"))
    if not files:
        print("this build has no kernels of its own: skipped")
        return 77
    for program, least in (("exec_test", len(files)), ("polyphony-worker", 1)):  # which contains only the kernels that it calls
        found = list(fat_binaries((build / program).read_bytes()))
        print(f"{program}: {len(found)} fat binaries of {len(files)} files")
        if not least <= len(found) <= len(files) or any(entries != WANTED for entries in found):
            print(found)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
