"""Kills, cancels and starves conversions at random moments, and looks at what they leave.

usage: crash.py LOADLINE [--kills N] [--cancels N] [--points N] [--seed N] [--folder DIR] [--only WORD]

After every interruption: no target is there in part, the source has its bytes (or, if it is consumed, the remains
have them), and --resume ends with the bytes of an undisturbed run and leaves nothing beside them. At last every N-th
call that changes a file is tried on its own (points.py); 0: none.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import points
from points import Failed, contents, expect, hidden, interruptions

CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16,
          "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 16000, "torch_dtype": "bfloat16"}
HERE = os.path.dirname(os.path.abspath(__file__))


class Job:
    """One way to convert: its arguments behind the source, and the result of an undisturbed run."""

    def __init__(self, name, out, options, consumes=False, parts=0):
        self.name, self.out, self.options, self.consumes, self.parts = name, out, options, consumes, parts
        self.reference, self.seconds = {}, 0.0


class Crash:
    def __init__(self, arguments):
        self.program, self.random = arguments.program, random.Random(arguments.seed)
        self.folder = tempfile.mkdtemp(prefix="loadline-crash-", dir=arguments.folder)
        self.source, self.work = os.path.join(self.folder, "m"), os.path.join(self.folder, "work")
        config = interruptions.write_json(os.path.join(self.folder, "config.json"), CONFIG)
        self.run("synth", config, self.source, "--random", "1", "--max-shard-size", "40MB")
        with open(os.path.join(self.source, "tokenizer.json"), "w") as file:
            file.write("{}")
        self.source_contents = contents(self.source)
        self.jobs = [Job("single", "out.gguf", ["--outtype", "f16", "--names", "keep"]),
                     Job("sharded", ".", ["--max-shard-size", "30MB"]),
                     Job("consume", ".", ["--max-shard-size", "30MB", "--consume"], consumes=True),
                     Job("consume one file", "out.safetensors", ["--consume"], consumes=True),
                     Job("part", ".", ["--max-shard-size", "20MB"], parts=3)]
        for job in self.jobs:
            self.fresh(job)
            start = time.monotonic()
            self.finish(job)
            job.seconds = time.monotonic() - start
            job.reference = contents(self.work)

    def run(self, *arguments, code=0, **options):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, **options)
        expect(done.returncode == code, f"{arguments}: exit {done.returncode}: {done.stderr or done.stdout}")
        return done

    def fresh(self, job):
        shutil.rmtree(self.work, ignore_errors=True)
        os.mkdir(self.work)
        self.input = self.source
        if job.consumes:
            self.input = os.path.join(self.folder, "consumed")
            shutil.rmtree(self.input, ignore_errors=True)
            shutil.copytree(self.source, self.input)

    def command(self, job, *more):
        out = os.path.normpath(os.path.join(self.work, job.out))
        return [self.program, "convert", self.input, out, *job.options, *more]

    def start(self, job, *more, **options):
        return subprocess.Popen(self.command(job, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **options)

    def parts(self, job):
        return [[f"--part={i + 1}/{job.parts}"] for i in range(job.parts)] if job.parts else [[]]

    def finish(self, job, *more):
        for part in self.parts(job):
            done = subprocess.run(self.command(job, *part, *more), capture_output=True, text=True)
            expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
        if job.parts:
            self.run("join", self.work)

    def interrupt(self, job, which, *more):
        """Starts all processes of a job and sends them a signal at random moments. The exit codes."""
        processes = [self.start(job, *part, *more) for part in self.parts(job)]
        codes = []
        for process in processes:
            time.sleep(self.random.uniform(0, 1.1 * job.seconds / len(processes)))
            process.send_signal(which)
        for process in processes:
            process.communicate()
            codes.append(process.returncode)
        if job.parts and all(code == 0 for code in codes):
            joining = subprocess.Popen([self.program, "join", self.work], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0, 0.3 * job.seconds))
            joining.send_signal(which)
            codes.append(joining.wait())
        return codes

    def check_targets(self, job):
        there = contents(self.work)
        for name, value in there.items():
            expect(job.reference.get(name) == value, f"{name} is there in part")
        if "model.safetensors.index.json" in there:
            expect(there == job.reference, "the index is there before the shards")
        if not job.consumes:
            expect(contents(self.source) == self.source_contents, "the source has changed")
        return there

    def check_done(self, job):
        expect(contents(self.work) == job.reference, "other bytes than those of an undisturbed run")
        expect(not hidden(self.work), f"left behind: {hidden(self.work)}")
        if job.consumes:
            left = [name for name in os.listdir(self.input) if name.endswith((".safetensors", ".index.json"))]
            expect(not left, f"consumed files are still there: {left}")

    def kill(self, job):
        self.fresh(job)
        codes = self.interrupt(job, signal.SIGKILL)
        self.check_targets(job)
        if not job.consumes and not job.parts and hidden(self.work) and self.random.random() < 0.25:
            if contents(self.work):
                return self.end(job)  # the last step was under way: only going on is right
            self.run("clean", self.work)
            expect(not hidden(self.work), "clean has left something")
            self.finish(job)
            return self.check_done(job)
        while self.random.random() < 0.3:
            self.interrupt(job, signal.SIGKILL, *([] if job.parts else ["--resume"]))
            self.check_targets(job)
        del codes
        self.end(job)

    def end(self, job):
        left = hidden(self.work)
        if contents(self.work) == job.reference and not any(
                os.path.exists(os.path.join(self.work, name, "job.json")) for name in left):
            if left:  # it died while it removed its temporary files
                self.run("clean", self.work)
            return self.check_done(job)
        if job.parts and contents(self.work):
            self.run("join", self.work)  # its last step had begun
        else:
            self.finish(job, *([] if job.parts else ["--resume"]))
        self.check_done(job)

    def cancel(self, job):
        self.fresh(job)
        codes = self.interrupt(job, signal.SIGINT)
        # a signal before main() has begun ends a process as it always does
        codes = [130 if code == -signal.SIGINT else code for code in codes]
        expect(all(code in (0, 130) for code in codes), f"exit codes {codes}")
        there = self.check_targets(job)
        if 130 in codes and not job.parts:
            if job.consumes and hidden(self.work):
                self.run("clean", self.work, code=1)
                expect(hidden(self.work), "clean has removed the only copy of a source")
                return self.end(job)
            expect(not hidden(self.work), f"canceled, and left behind: {hidden(self.work)}")
            if not there:
                expect(contents(self.input) == self.source_contents, "the source has changed")
        elif job.parts:
            self.end(job)

    def faults(self):
        """Every failing call gives one clear error, or none if the program has another way."""
        library = interruptions.fault_library(os.path.join(HERE, "faults.c"), self.folder)
        for call in ("pwrite", "fsync", "rename", "fallocate", "pread"):
            for n in (1, 2, 3, 5, 9, 20):
                for job in self.jobs[:2]:
                    self.fresh(job)
                    folder = self.source if call == "pread" else self.work
                    environment = dict(os.environ, LD_PRELOAD=library, LOADLINE_FAULT=f"{call}:{n}",
                                       LOADLINE_FAULT_FOLDER=folder)
                    process = self.start(job, env=environment)
                    said, _ = process.communicate()
                    what = f"{call} {n}, {job.name}"
                    expect(process.returncode in (0, 1), f"{what}: exit {process.returncode}: {said}")
                    there = self.check_targets(job)
                    if process.returncode == 1:
                        expect("Input/output error" in said, f"{what}: says only: {said}")
                        expect(not hidden(self.work), f"{what}: left behind {hidden(self.work)}")
                        expect(not there, f"{what}: some targets are there")
                    else:
                        self.check_done(job)
                    print(f"  {what}: exit {process.returncode}")

    def disks(self):
        """File systems that refuse writes past the page cache, or write less than they are asked to."""
        library = interruptions.fault_library(os.path.join(HERE, "faults.c"), self.folder)
        for disk in ("no open", "no write", "short"):
            for job in self.jobs[:4]:
                # a file of 30 MB ends before anything waits for the disk
                for fault in ("",) if job.out == "." else ("", "wait:1", "wait:9"):
                    self.fresh(job)
                    environment = dict(os.environ, LD_PRELOAD=library, LOADLINE_FAULT_DISK=disk, LOADLINE_FAULT=fault,
                                       LOADLINE_FAULT_FOLDER=self.work)
                    process = self.start(job, env=environment)
                    said, _ = process.communicate()
                    what = f"{disk}, {job.name}, {fault or 'no fault'}"
                    expect(process.returncode == (1 if fault else 0), f"{what}: exit {process.returncode}: {said}")
                    if fault:
                        expect("Input/output error" in said, f"{what}: says only: {said}")
                        self.check_targets(job)
                        self.end(job)
                    else:
                        self.check_done(job)
                    print(f"  {what}: exit {process.returncode}")

    def source_changes(self):
        job = self.jobs[1]
        for how in ("truncated", "written to", "replaced"):
            refused, complete = 0, 0
            for _ in range(4):
                self.fresh(job)
                self.input = os.path.join(self.folder, "changing")
                shutil.rmtree(self.input, ignore_errors=True)
                shutil.copytree(self.source, self.input)
                process = self.start(job)
                time.sleep(self.random.uniform(0.2, 0.7) * job.seconds)
                process.send_signal(signal.SIGSTOP)
                running = process.poll() is None and not contents(self.work) and hidden(self.work)
                path = os.path.join(self.input, "model-00003-of-00004.safetensors")
                path = path if os.path.exists(path) else sorted(
                    os.path.join(self.input, name) for name in os.listdir(self.input) if name.endswith(".safetensors"))[-1]
                if how == "truncated":
                    os.truncate(path, os.path.getsize(path) // 2)
                elif how == "written to":
                    with open(path, "r+b") as file:
                        file.seek(-1000, 2)
                        file.write(b"changed")
                else:
                    shutil.copy(path, path + ".new")
                    os.replace(path + ".new", path)
                process.send_signal(signal.SIGCONT)
                said, _ = process.communicate()
                if not running:
                    continue  # it was not far enough, or too far
                if process.returncode == 0:  # the sources had been checked for the last time
                    expect(contents(self.work) == job.reference, f"source {how}: another output")
                    complete += 1
                    continue
                refused += 1
                expect(process.returncode == 1, f"source {how}: exit {process.returncode}: {said}")
                expect(not contents(self.work) and not hidden(self.work), f"source {how}: something is left")
                print(f"  source {how}: {said.strip().splitlines()[-1]}")
            expect(refused > 0 or complete == 0, f"source {how}: never refused")

    def small_disk(self):
        if os.geteuid() != 0:
            return print("  small disk: skipped, only root can mount one")
        disk = os.path.join(self.folder, "disk")
        os.makedirs(disk, exist_ok=True)
        for options, words in (("size=40m", "free"), ("size=400m,ro", "Read-only")):
            if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk]).returncode != 0:
                return print("  small disk: skipped, none can be mounted")
            try:
                for job in self.jobs[:2]:
                    out = os.path.join(disk, "new" if job.out == "." else job.out)
                    done = subprocess.run([self.program, "convert", self.source, out, *job.options],
                                          capture_output=True, text=True)
                    dry = subprocess.run([self.program, "convert", self.source, out, *job.options, "--dry-run"],
                                         capture_output=True, text=True)
                    expect(done.returncode == 1 and words in done.stderr, f"{options}: {done.stderr}")
                    expect(dry.returncode == 1, f"{options}: --dry-run promised what fails")
                    expect(not os.listdir(disk), f"{options}: left {os.listdir(disk)}")
                    print(f"  {options}, {job.name}: {done.stderr.strip().splitlines()[-1]}")
            finally:
                subprocess.run(["umount", disk], check=True)
        # a limit on the size of files, as a quota would be
        done = subprocess.run(["prlimit", "--fsize=20000000", *self.command(self.jobs[0])], capture_output=True, text=True)
        expect(done.returncode == 1 and "File too large" in done.stderr, f"file size limit: {done.returncode} {done.stderr}")

    def ranks(self):
        """Four processes that mpirun started write the bytes of one."""
        if not shutil.which("mpirun"):
            return print("  mpirun: skipped, it is not installed")
        job = self.jobs[-1]
        self.fresh(job)
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        done = subprocess.run(["mpirun", *root, "--oversubscribe", "-n", "4", *self.command(job, "--part", "auto")],
                              capture_output=True, text=True)
        expect(done.returncode == 0, f"mpirun: exit {done.returncode}: {done.stderr}")
        self.run("join", self.work)
        self.check_done(job)
        print("  mpirun -n 4: the bytes of one process")

    def all(self, kills, cancels, only):
        for name, count, action in (("kill", kills, self.kill), ("cancel", cancels, self.cancel)):
            if only and only not in name:
                continue
            for i in range(count):
                job = self.jobs[i % len(self.jobs)]
                try:
                    action(job)
                except Failed as failure:
                    raise Failed(f"{name} {i} of {job.name}: {failure}\n  all is kept in {self.folder}") from failure
            print(f"{name}: {count} of {', '.join(job.name for job in self.jobs)}", flush=True)
        for name, action in (("faults", self.faults), ("direct", self.disks),
                             ("source", self.source_changes), ("disk", self.small_disk),
                             ("ranks", self.ranks)):
            if only and only not in name:
                continue
            print(name, flush=True)
            action()
        shutil.rmtree(self.folder)


def main():
    arguments = interruptions.arguments(kills=200, cancels=50, points=1, seed=None)
    print(f"crash: seed {arguments.seed}", flush=True)
    try:
        Crash(arguments).all(arguments.kills, arguments.cancels, arguments.only)
        if arguments.points and (not arguments.only or arguments.only in "points"):
            points.Points(argparse.Namespace(program=arguments.program, folder=arguments.folder, only="",
                                             stride=arguments.points, offset=arguments.seed)).all()
    except Failed as failure:
        sys.exit(f"crash: FAILED: {failure}")


main()
