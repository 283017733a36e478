#!/usr/bin/env python3
"""Checks the house rules. Usage: run.py ROOT {text|controls|readmes|headers|symbols} [ARGS]

  text      every rule of rules.py over every file of the repository
  controls  each rule fires on a sample that breaks it, and stays silent on one that does not
  readmes   README.md and README.zh-CN.md have the same structure and the same commands
  packages  every -dev library of tools/setup has its reason in docs/dependencies.md
  headers   COMPILER [FLAGS…]: each header of src/ compiles alone (x.cc starting with x.h shows that)
  symbols   LIBRARY…: the pure libraries call nothing outside memory and text
allowed.txt lists known exceptions as `rule path [count]`: a ratchet, entries only go away or shrink.
"""

import concurrent.futures
import os
import re
import subprocess
import sys

import rules

HERE = os.path.dirname(os.path.abspath(__file__))


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, text=True)
    if out.returncode == 0:
        return [p for p in out.stdout.split("\n") if p and os.path.isfile(os.path.join(root, p))]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", "state", ".git", "node_modules")]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def allowed():
    entries = {}
    for line in read(HERE, "allowed.txt").split("\n"):
        words = line.split("#")[0].split()
        if words:
            entries[(words[0], words[1])] = int(words[2]) if len(words) > 2 else None
    return entries


def check_text(root):
    exceptions, used, failures = allowed(), set(), 0
    for path in tracked(root):
        if re.search(r"\.(png|db|bin|pb|gz)$", path):
            continue
        text = read(root, path)
        for rule in rules.TEXT_RULES:
            problems = rule(path, text)
            key = (rule.__name__, path)
            if key in exceptions:
                used.add(key)
                limit = exceptions[key]
                if problems and (limit is None or len(problems) <= limit):
                    continue
                if not problems:
                    print(f"tests/tidy/allowed.txt: '{key[0]} {key[1]}' is no longer needed: remove it")
                    failures += 1
            for line, why in problems:
                print(f"{path}:{line}: [{rule.__name__}] {why}")
                failures += 1
    for key in exceptions.keys() - used:
        print(f"tests/tidy/allowed.txt: no file for '{key[0]} {key[1]}': remove it")
        failures += 1
    return failures


CONTROLS = [
    (rules.layering, "src/core/a.cc", '#include "store/journal.h"\n', '#include "base/money.h"\n'),
    (rules.layering, "src/core/a.cc", "#include <sys/socket.h>\n", "#include <vector>\n"),
    (rules.banned_calls, "src/cli/a.cc", "auto r = std::regex(x);\n", "// std::regex is banned\n"),
    (rules.banned_calls, "src/cli/a.cc", "system(command);\n", "file_system(command);\n"),
    (rules.banned_calls, "src/core/a.cc", "double x = 0;\n", "int doubled = 0;\n"),
    (rules.banned_calls, "tests/a_test.cc", "std::this_thread::sleep_for(1s);\n", "wait();\n"),
    (rules.real_clock, "src/core/a.cc", "auto t = std::chrono::system_clock::now();\n", "stamp.now;\n"),
    (rules.machine_paths, "docs/a.md", "see /" + "root/x\n", "see /var/lib/bmd/root/x\n"),
    (rules.file_size, "src/core/a.cc", "\n" * 501, "\n" * 500),
    (rules.columns, "src/core/a.cc", "x" * 101, "x" * 100),
    (rules.function_size, "src/core/a.cc", "void f() {\n" + "  g();\n" * 70 + "}\n",
     "void f() {\n" + "  g();\n" * 60 + "}\n"),
    (rules.unfinished, "src/core/a.cc", "// TO" + "DO later\n", "// to do later\n"),
    (rules.include_guard, "src/core/a.h", "int x;\n", "#pragma once\nint x;\n"),
]


def check_controls(_root):
    failures = 0
    for rule, path, bad, good in CONTROLS:
        if not rule(path, bad):
            print(f"{rule.__name__} stays silent on a sample that breaks it: {bad[:60]!r}")
            failures += 1
        if rule(path, good):
            print(f"{rule.__name__} fires on a sample that is fine: {good[:60]!r}")
            failures += 1
    for rule in rules.TEXT_RULES:
        if rule not in [c[0] for c in CONTROLS]:
            print(f"{rule.__name__} has no control")
            failures += 1
    return failures


def outline(text):
    headings, blocks, inside, block = [], [], False, []
    for line in text.split("\n"):
        if line.startswith("```"):
            if inside:
                blocks.append("\n".join(block))
                block = []
            inside = not inside
        elif inside:
            block.append(re.sub(r"\s+#.*$", "", line))
        elif re.match(r"#+ ", line):
            headings.append(len(line) - len(line.lstrip("#")))
    return headings, blocks


def check_readmes(root):
    english, chinese = outline(read(root, "README.md")), outline(read(root, "README.zh-CN.md"))
    failures = 0
    if english[0] != chinese[0]:
        print(f"README headings differ: {english[0]} and {chinese[0]}")
        failures += 1
    for number, (a, b) in enumerate(zip(english[1], chinese[1]), 1):
        if a != b:
            print(f"README code block {number} differs:\n{a}\n---\n{b}")
            failures += 1
    if len(english[1]) != len(chinese[1]) or not english[1]:
        print("the READMEs have different numbers of code blocks, or none")
        failures += 1
    return failures


def check_packages(root):
    setup = read(root, "tools/setup").split("packages=(")[1].split("\n)")[0]
    names = re.findall(r"^\s*([^#\n]+)$", setup, re.M)
    libraries = [n for line in names for n in line.split() if n.endswith("-dev")]
    documented = read(root, "docs/dependencies.md")
    missing = [n for n in libraries if f"`{n}`" not in documented]
    for name in missing:
        print(f"docs/dependencies.md does not say why {name} is used")
    return len(missing) + (0 if libraries else 1)


def proven_by_build(root, header):
    """x.cc that includes x.h before anything else has compiled it alone."""
    source = os.path.join(root, header[:-2] + ".cc")
    if not os.path.isfile(source):
        return False
    first = re.search(r'^\s*#\s*include\s+[<"]([^">]+)[">]', read(root, header[:-2] + ".cc"), re.M)
    return first is not None and "src/" + first.group(1) == header


def check_headers(root, compiler):
    headers = [p for p in tracked(root) if re.match(r"^src/.*\.h$", p) and not proven_by_build(root, p)]

    def compile_alone(header):
        command = compiler + ["-fsyntax-only", "-x", "c++", "-include", os.path.join(root, header), "/dev/null"]
        return header, subprocess.run(command, capture_output=True, text=True)

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for header, result in pool.map(compile_alone, headers):
            if result.returncode != 0:
                print(f"{header} does not compile alone:\n{result.stderr[:800]}")
                failures += 1
    return failures + (0 if headers else 1)


# Undefined symbols that would let something non-deterministic or outside in.
IMPURE = re.compile(
    r"^(time|gettimeofday|clock|clock_gettime|localtime|gmtime|rand|srand|random|getrandom|getentropy|open|openat"
    r"|fopen|fread|read|write|socket|connect|send|recv|pthread_create|getenv|setlocale|sleep|usleep|nanosleep"
    r"|fork|execve|system|popen|log|exp|pow|sqrt|_ZNSt6chrono.*clock3nowEv|_ZNSt6thread.*|_ZNSt13random_device.*)$")


def check_symbols(_root, libraries):
    failures = 0
    for library in libraries:
        out = subprocess.run(["nm", "-u", "--format=posix", library], capture_output=True, text=True, check=True)
        names = {line.split()[0].split("@")[0] for line in out.stdout.split("\n") if line and " U" in line}
        if not names:
            print(f"{library}: no undefined symbols at all: is it the right file?")
            failures += 1
        for name in sorted(n for n in names if IMPURE.match(n)):
            print(f"{os.path.basename(library)} calls {name}")
            failures += 1
    return failures


def main():
    root, what, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    checks = {"text": check_text, "controls": check_controls, "readmes": check_readmes, "packages": check_packages}
    if what in checks:
        failures = checks[what](root)
    elif what == "headers":
        failures = check_headers(root, rest)
    elif what == "symbols":
        failures = check_symbols(root, rest)
    else:
        sys.exit(__doc__)
    print(f"tidy {what}: {failures} problem(s)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
