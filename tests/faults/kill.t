#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL under load: writers on one log die at any moment, and nothing promised is lost.

    kill.t - [soak]     quick: 20 rounds; soak: 500

Each round starts writers of every durability on one log and kills them at random times;
every third round kills the one who recovers, too, again and again. Then a writer goes on,
the log must verify, and every event that was ever acknowledged must be in it. At last
eight processes write as many events as they can promise, and none may be missing.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faultlab import DRIVER, Run, Tap, judge, run, workplace

WRITERS = 4
ENDLESS = 100_000  # marks that one writer may use


class Writer:
    """A driver that appends until it is killed; what it says goes to a file."""

    def __init__(self, root, number, *options):
        self.first = number * ENDLESS
        self.path = f"{root}.{number}"
        args = [DRIVER, "append", root, str(ENDLESS), f"first={self.first}",
                "segment=20000", "every=50", *options]
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def end(self):
        status = self.process.wait(timeout=20)
        with open(self.path, encoding="utf-8", errors="replace") as said:
            r = Run(status, said.read())
        os.unlink(self.path)
        return r


def kill_round(root, number, rng, acked):
    """What is wrong after one round."""
    wrong = []
    options = ["durability=write", "durability=group", "durability=strict"]
    writers = [Writer(root, number * WRITERS + i, options[(number + i) % 3])
               for i in range(WRITERS)]
    time.sleep(rng.uniform(0.01, 0.12))
    for w in rng.sample(writers, WRITERS):
        w.kill()
        time.sleep(rng.choice([0, 0, rng.uniform(0, 0.01)]))
    for w in writers:
        r = w.end()
        acked |= set(r.numbers("ack"))
        trouble = r.said("lost", "unsettled", "unsigned", "closed", "unclosed")
        if r.status != -9 or trouble:
            wrong.append(f"a writer ended with {r.status}: {trouble[:2]} {r.out[-200:]}")
    if number % 3 == 2:
        kill_recovery(root, rng)
    return wrong


def kill_recovery(root, rng):
    """Spoil the head, so that recovery has work, and kill whoever does it."""
    for _ in range(4):
        head = root + "/audit/log/head"
        if rng.random() < 0.5 and os.path.exists(head):
            os.unlink(head)
        one = subprocess.Popen([DRIVER, "append", root, "0"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.012))
        one.send_signal(signal.SIGKILL)
        one.wait()


def rounds(tap, place, count, seed):
    rng = random.Random(seed)
    root, acked, wrong = f"{place}/kill", set(), []
    os.mkdir(root)
    for number in range(count):
        found = kill_round(root, number, rng, acked)
        found += judge(root, acked, mark=900_000_000 + number)
        acked.add(900_000_000 + number)
        if len(acked) > 40_000:  # begin anew: each round reads all of it
            shutil.rmtree(root)
            os.mkdir(root)
            acked = set()
        wrong += [f"round {number}: {w}" for w in found]
        if wrong:
            break
    tap.ok(not wrong, f"{count} rounds of SIGKILL under load, seed {seed}", *wrong[:9])
    return wrong


def eight_processes(tap, place, each):
    root = f"{place}/eight"
    os.mkdir(root)
    command = [DRIVER, "append", root, str(each), "segment=1000000"]
    writers = [subprocess.Popen([*command, f"first={i * each}", f"every={500 + i}"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
               for i in range(8)]
    runs = [Run(w.wait(), out.decode()) for w in writers for out in [w.communicate()[0]]]
    wrong = [r.out[-200:] for r in runs if r.status != 0]
    acked = {m for r in runs for m in r.numbers("ack")}
    if acked != set(range(8 * each)):
        wrong.append(f"{len(acked)} of {8 * each} were acknowledged")
    wrong += judge(root, acked, runs)
    events = run([DRIVER, "check", root], timeout=120).numbers("events")
    if events != [8 * (each + 2) + 3]:  # with the beginning and the end of all nine
        wrong.append(f"there are {events} events")
    tap.ok(not wrong, f"8 processes x {each} events: no gap, no fork, all there", *wrong)


def main():
    soak = sys.argv[2:] == ["soak"]
    seed = int(os.environ.get("FAULTS_SEED", random.randrange(1 << 32)))
    place = workplace()
    tap = Tap()
    kept = True
    try:
        kept = rounds(tap, place, 500 if soak else 20, seed)
        eight_processes(tap, place, 10_000 if soak else 500)
    finally:
        if not (kept and os.environ.get("FAULTS_KEEP")):
            shutil.rmtree(place, ignore_errors=True)
    tap.finish()


main()
