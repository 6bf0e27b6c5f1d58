"""Runs a command under SystemCallFilter= and RestrictAddressFamilies= as systemd would set them: other calls kill it, other
families are refused. For x86-64, with systemd-analyze and the headers of Linux; without them it ends with 77.

    sandbox.py "@system-service @pkey" "AF_INET AF_UNIX" command...
"""

import ctypes
import os
import re
import socket
import struct
import subprocess
import sys

HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
ALLOW, KILL, UNSUPPORTED_FAMILY = 0x7FFF0000, 0x80000000, 0x00050000 | 97
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, FIRST_ARGUMENT_AT = 0, 16
SET_SECCOMP, FILTER, NO_NEW_PRIVILEGES = 22, 2, 38


def calls_of(name, seen):
    """The names of a set of systemd, and of those in it."""
    if not name.startswith("@"):
        return {name}
    if name in seen:
        return set()
    seen.add(name)
    command = ["systemd-analyze", "syscall-filter", name]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    names = [line.strip() for line in listed if line.strip() and not line.strip().startswith("#")]
    return set().union(*(calls_of(one, seen) for one in names))


def statement(code, value):
    return [struct.pack("HBBI", code, 0, 0, value)]


def unless_equal(value, skip):
    return [struct.pack("HBBI", JUMP_IF_EQUAL, 0, skip, value)]


def main(filters, families, command):
    with open(HEADER, encoding="utf-8") as header:
        numbers = {name: int(value) for name, value in re.findall(r"#define __NR_(\w+) (\d+)", header.read())}
    allowed = set().union(*(calls_of(one, set()) for one in filters.split()))
    known = [int(getattr(socket, family)) for family in families.split()]
    program = statement(LOAD, NUMBER_AT)
    program += unless_equal(numbers["socket"], 2 + 2 * len(known)) + statement(LOAD, FIRST_ARGUMENT_AT)
    for family in known:
        program += unless_equal(family, 1) + statement(RETURN, ALLOW)
    program += statement(RETURN, UNSUPPORTED_FAMILY)
    for name in sorted(allowed & numbers.keys()):
        program += unless_equal(numbers[name], 1) + statement(RETURN, ALLOW)
    program += statement(RETURN, KILL)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    buffer = ctypes.create_string_buffer(b"".join(program))
    filled = Program(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(filled), 0, 0) != 0:
        raise OSError("the kernel takes no filter")
    os.execvp(command[0], command)


try:
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
except (OSError, KeyError) as error:
    print(f"no sandbox: {error}", file=sys.stderr)
    sys.exit(77)
