#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that is really full: writers go on, say what they lost, and never crash.

    full.t -

A small file system in memory is filled up to its last pages before a log is begun there,
and while one is written. When there is room again, the log must say what is missing.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faultlab import DRIVER, Run, Tap, driver, judge, skip_all, workplace

PAGE = 4096
SIZE = 1 << 20


class Disk:
    """A mounted tmpfs with a ballast file that leaves so many pages free."""

    def __init__(self, path):
        self.path = path
        self.ballast = os.path.join(path, "ballast")
        os.mkdir(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", path],
                       check=True, capture_output=True)

    def fill(self, pages):
        free = os.statvfs(self.path).f_bfree
        with open(self.ballast, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, max(free - pages, 1) * PAGE)

    def free(self):
        os.unlink(self.ballast)

    def unmount(self):
        subprocess.run(["umount", "-l", self.path], check=True)


def begin_on_a_full_disk(tap, disk):
    wrong = []
    for pages in range(0, 60):
        root = f"{disk.path}/root"
        os.mkdir(root)
        disk.fill(pages)
        r = driver("append", root, 3, "every=2")
        if r.status not in (0, 2, 3):
            wrong.append(f"{pages} pages: ends with {r.status}: {r.out[-200:]}")
        disk.free()
        wrong += [f"{pages} pages: {w}" for w in judge(root, set(r.numbers("ack")), [r])]
        shutil.rmtree(root)
    tap.ok(not wrong, "a log is begun with 0 to 59 free pages", *wrong[:9])


def fill_while_writing(tap, disk, durability):
    """The writer waits before its end until there is room again."""
    root = f"{disk.path}/root"
    os.mkdir(root)
    disk.fill(60)
    command = [DRIVER, "append", root, "1500", "every=100", "hold=1", "segment=50000",
               f"durability={durability}"]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = []
    for line in writer.stdout:
        said.append(line)
        if line == b"ready\n":
            disk.free()
            break
    rest, _ = writer.communicate(b"\n", timeout=60)
    r = Run(writer.returncode, (b"".join(said) + rest).decode())
    lost = len(r.numbers("lost"))
    wrong = judge(root, set(r.numbers("ack")), [r])
    found = driver("check", root)
    tap.ok(r.status == 2 and lost > 100 and r.numbers("total") == [lost],
           f"{durability}: the disk was full for {lost} events", r.out[-300:])
    tap.ok(found.numbers("gap") == [lost], f"{durability}: a gap says so", found.out[-300:])
    tap.ok(not wrong, f"{durability}: the log is sound, what was acknowledged is there",
           *wrong)
    shutil.rmtree(root)


def main():
    place = workplace()
    try:
        disk = Disk(place + "/disk")
    except (OSError, subprocess.CalledProcessError):
        shutil.rmtree(place)
        skip_all("no small file system can be mounted here")
    tap = Tap()
    try:
        begin_on_a_full_disk(tap, disk)
        for durability in ["write", "group"]:
            fill_while_writing(tap, disk, durability)
    finally:
        disk.unmount()
        shutil.rmtree(place, ignore_errors=True)
    tap.finish()


main()
