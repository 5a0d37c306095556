#!/usr/bin/env python3
"""Figures of the source tree, and the limits that it keeps (ARCHITECTURE.md). Run: tests/house.py [ROOT]

Prints what a reader feels: how many files, how long, how deep the includes of a room, which headers have a
single user, and types that two files define under one name. Exits 1 if a limit is broken."""
import collections
import os
import re
import statistics
import sys

PRODUCT = ("app", "core", "importers", "exporters")
FILES, MEDIAN, LONGEST, FUNCTION = 560, 140, 600, 60
LONG_FUNCTIONS = 0  # of more than FUNCTION lines
ENTRIES, DEPTH, SINGLE_USERS = 30, 6, 20

root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
broken = []


def limit(name, value, most, detail=()):
    good = value <= most
    print(f"{'  ' if good else '! '}{name:<46} {value:>7,}  at most {most:,}")
    if not good:
        broken.append(name)
        for line in list(detail)[:20]:
            print(f"      {line}")


def sources(tops):
    found = {}
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".h", ".cpp")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        found[os.path.relpath(path, root)] = file.read()
    return found


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("core", "app") and len(parts) > 2 else parts[0]


def includes(text):
    return re.findall(r'^#include "([^"]+)"', text, re.M)


# What opens a block that is no function: a control statement, a type, a table, a call with a lambda.
BLOCK = re.compile(r"(namespace|struct|class|enum|union|if|for|while|switch|else|do|return|try|catch|case|\})\b"
                   r"|[^(]* = |[\w.]+\(")


def functions(text):
    """(line, length) of each function with a body of its own, as clang-format lays it out."""
    lines = text.split("\n")
    for opening, line in enumerate(lines[:-1]):
        if not re.search(r"[\w)}>] \{$", line):
            continue
        body = next((other for other in lines[opening + 1 :] if other), "")
        if re.fullmatch(r" *(public|protected|private):", body):
            continue  # a class inside a class
        indent = " " * max(0, len(body) - len(body.lstrip()) - 2)
        begin = opening
        while begin > 0 and (not lines[begin] or lines[begin][: len(indent) + 1].rstrip() == indent.rstrip()):
            begin -= 1
        head = " ".join(lines[begin : opening + 1])
        if "(" not in head or len(indent) > 2 or BLOCK.match(head.strip()):
            continue
        end = next((at for at in range(opening + 1, len(lines)) if lines[at].startswith(indent + "}")), opening)
        yield begin + 1, end - begin + 1


def longest_chain(graph, members):
    """The longest chain of headers that include each other inside one room."""
    depth = {}

    def of(header, above):
        if header in above:
            broken.append("circle of includes: " + " > ".join(above + [header]))
            return []
        if header not in depth:
            below = [of(other, above + [header]) for other in graph[header] if other in members]
            depth[header] = [header] + max(below, key=len, default=[])
        return depth[header]

    return max((of(header, []) for header in members), key=len, default=[])


def types(text):
    """Names of the types that a file defines in named namespaces, with the namespace."""
    space, unnamed = "", 0
    for line in text.split("\n"):
        if found := re.match(r"namespace ([\w:]+) \{$", line):
            space = found.group(1)
        elif line == "namespace {":
            unnamed += 1
        elif line == "}  // namespace":
            unnamed -= 1
        elif unnamed == 0:
            if found := re.match(r"(?:struct|class|enum class|enum) (\w+)(?: final)?(?: : [^;]*)?(?: \{|$)", line):
                yield f"{space}::{found.group(1)}"


def main():
    product, tests = sources(PRODUCT), sources(("tests",))
    lines = {path: text.count("\n") for path, text in product.items()}
    print(f"  {'lines of product code':<46} {sum(lines.values()):>7,}")
    limit("product files", len(product), FILES)
    median = int(statistics.median(lines.values()))
    print(f"{'  ' if median >= MEDIAN else '! '}{'median lines of a file':<46} {median:>7,}  at least {MEDIAN}")
    if median < MEDIAN:
        broken.append("median")
    limit("lines of the longest file", max(lines.values()), LONGEST,
          (f"{path}: {count}" for path, count in lines.items() if count > LONGEST))
    long = [(count, f"{path}:{at}: {count} lines") for path, text in product.items() for at, count in functions(text)]
    over = [text for count, text in sorted(long, reverse=True) if count > FUNCTION]
    limit(f"functions of more than {FUNCTION} lines", len(over), LONG_FUNCTIONS, over)

    folders = collections.Counter()
    for top in PRODUCT:
        for folder, names, files in os.walk(os.path.join(root, top)):
            path = os.path.relpath(folder, root)
            folders[path] = len(names) + len(files)
    limit("entries of the fullest folder", max(folders.values()), ENTRIES,
          (f"{path}: {count}" for path, count in folders.items() if count > ENTRIES))

    users = collections.defaultdict(set)
    for path, text in {**product, **tests}.items():
        for header in includes(text):
            if path != header[:-2] + ".cpp":
                users[header].add(path)
    headers = [path for path in product if path.endswith(".h")]
    single = [path for path in headers if len([user for user in users[path] if user in product]) <= 1]
    limit("headers with a single user", len(single), SINGLE_USERS, sorted(single))

    graph = {path: includes(product[path]) for path in headers}
    for room in sorted({room_of(path) for path in headers}):
        members = {path for path in headers if room_of(path) == room}
        chain = longest_chain(graph, members)
        limit(f"depth of includes in {room}", len(chain), DEPTH, [" > ".join(chain)])

    defined = collections.defaultdict(set)
    for path, text in {**product, **tests}.items():
        if not path.startswith(("tests/fuzz/", "tests/bench/")):
            for name in types(text):
                defined[name].add(path)
    twice = {name: paths for name, paths in defined.items() if len(paths) > 1}
    limit("types that two files define under one name", len(twice), 0,
          (f"{name}: {', '.join(sorted(paths))}" for name, paths in twice.items()))

    once = [path for path, text in sources(PRODUCT).items() if re.search(r"std::(call_once|once_flag)", text)]
    limit("files with std::call_once (core/base/tasks.h has Once)", len(once), 0, sorted(once))

    listed = set()
    for folder, _, names in os.walk(root):
        if "CMakeLists.txt" in names and not os.path.relpath(folder, root).startswith("build"):
            with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as file:
                for name in re.findall(r"[\w/.-]+\.(?:h|cpp)\b", file.read()):
                    listed.add(os.path.relpath(os.path.join(folder, name), root))
    alone = [path for path in product if path not in listed and path not in ("app/gui_request.h",)]
    limit("files that no room lists", len(alone), 0, sorted(alone))
    for text in broken:
        if text.startswith("circle"):
            print("! " + text)
    print(f"{len(broken)} limits broken" if broken else "every limit kept")
    return 1 if broken else 0


sys.exit(main())
