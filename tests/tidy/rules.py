"""House rules, each a function from (path, text) to a list of problems. See run.py for the list.

Paths are relative to the repository and use '/'. A problem is (line, message).
"""

import re

# A folder may include itself and the folders named here (docs/ARCHITECTURE.md has the why).
LAYERS = {
    "base": set(),
    "core": {"base"},
    "agent_core": {"base"},
    "store": {"base", "core"},
    "wire": {"base", "core"},
    "api": {"base", "core", "wire"},
    "sim": {"base", "core", "agent_core", "store"},
    "controld": {"base", "core", "agent_core", "store", "wire", "api"},
    "agent": {"base", "agent_core", "wire"},
    "cli": {"base", "wire"},
}
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

PURE = re.compile(r"^src/(base|core|agent_core)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
COMMENT = re.compile(r"//.*$")


def _code_lines(text):
    """Lines without // comments and string contents, numbered from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        yield number, COMMENT.sub("", line)


def layering(path, text):
    match = re.match(r"^src/([a-z_]+)/", path)
    if not match:
        return []
    folder = match.group(1)
    allowed = LAYERS.get(folder)
    if allowed is None:
        return [(1, f"folder src/{folder} has no layer: add it to LAYERS and docs/ARCHITECTURE.md")]
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quoted, target = found.group(1) == '"', found.group(2)
        top = target.split("/")[0]
        if quoted and top in LAYERS and top != folder and top not in allowed:
            problems.append((number, f"src/{folder} must not include {target}"))
        if PURE.match(path) and not quoted and ("/" in target or target.endswith(".h")):
            problems.append((number, f"{target}: base, core and agent_core use the C++ library only"))
    return problems


BANNED_EVERYWHERE = [
    (re.compile(r"\bstd::regex\b|<regex>"), "std::regex: not on any input; write a small parser"),
    (re.compile(r"(?<![\w:.>])(?:std::)?system\s*\("), "system(): no shell; spawn an argv array"),
    (re.compile(r"\bpopen\s*\("), "popen(): no shell; spawn an argv array"),
    (re.compile(r"\bcatch\s*\(\s*\.\.\.\s*\)"), "catch (...) hides our own bugs: name the exception"),
    (re.compile(r"\b(strcpy|strcat|sprintf|gets)\s*\("), "unbounded C string call"),
    (re.compile(r"\busing namespace\b(?!\s+std::(chrono_)?literals)"), "using namespace"),
]
BANNED_PURE = [
    (re.compile(r"\b(float|double)\b"), "floating point in a pure folder"),
    (re.compile(r"\bunordered_(map|set|multimap|multiset)\b"), "unordered container in a pure folder"),
    (re.compile(r"\b(system_clock|steady_clock|high_resolution_clock)\b"), "clock in a pure folder"),
    (re.compile(r"\b(random_device|mt19937|uniform_int_distribution|shuffle)\b"),
     "randomness in a pure folder: use base/prng.h"),
    (re.compile(r"\bstd::(thread|mutex|atomic|async|future)\b"), "threads in a pure folder"),
    (re.compile(r"\b(getenv|setlocale)\b"), "environment or locale in a pure folder"),
]
BANNED_TESTS = [
    (re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.])sleep\s*\(\s*\d"),
     "a test waits for a condition, never for time"),
    (re.compile(r"\b(GTEST_SKIP|DISABLED_)"), "a test that does not run guards nothing"),
]
PURE_EXEMPT = {"src/base/check.cc"}  # prints before it aborts


def banned_calls(path, text):
    if not re.match(r"^(src|tests|bench)/.*\.(h|cc|c)$", path):
        return []
    rules = list(BANNED_EVERYWHERE)
    if PURE.match(path) and path not in PURE_EXEMPT:
        rules += BANNED_PURE
    if path.startswith("tests/"):
        rules += BANNED_TESTS
    return [(number, why) for number, line in _code_lines(text)
            for pattern, why in rules if pattern.search(line)]


def real_clock(path, text):
    """Wall time is read where its meaning is documented, nowhere else (allowed.txt)."""
    if not re.match(r"^src/.*\.(h|cc)$", path):
        return []
    return [(number, "reads the wall clock: pass the time in, or add the file to allowed.txt")
            for number, line in _code_lines(text)
            if re.search(r"\bsystem_clock::now\b|\bCLOCK_REALTIME\b|(?<![\w.>:])time\(nullptr\)", line)]


def machine_paths(path, text):
    if path.startswith("tests/tidy/") or path == "LICENSE":
        return []
    names = "|".join(["work", "root", "home"])
    pattern = re.compile(rf"(?<![\w.$}}/-])/({names})/[\w.]")
    return [(number, "a path of one machine") for number, line in enumerate(text.split("\n"), 1)
            if pattern.search(line)]


def file_size(path, text):
    if not re.match(r"^(src|tests|bench)/.*\.(h|cc|c|py)$", path):
        return []
    lines = text.count("\n")
    return [(1, f"{lines} lines; the limit is {FILE_LINES_MAX}")] if lines > FILE_LINES_MAX else []


def columns(path, text):
    if not re.match(r"^(src|bench)/.*\.(h|cc|c)$", path):
        return []
    return [(number, f"{len(line)} columns; the limit is {COLUMNS_MAX}")
            for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS_MAX]


NOT_A_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern|template|using|\}|#|//)")


def function_size(path, text):
    """Bodies that open at the end of an unindented statement and close with an unindented '}'."""
    if not re.match(r"^(src|bench)/.*\.(cc|c)$", path):
        return []
    problems, start, head = [], None, ""
    for number, line in enumerate(text.split("\n"), 1):
        if start is None:
            if line and not line[0].isspace():
                head = line
            if line.endswith("{") and head and not NOT_A_FUNCTION.match(head) and "(" in head:
                start = number
        elif line.startswith("}"):
            if number - start + 1 > FUNCTION_LINES_MAX:
                name = head.split("(")[0].split()[-1]
                problems.append((start, f"{name}(): {number - start + 1} lines; the limit is "
                                        f"{FUNCTION_LINES_MAX}"))
            start, head = None, ""
    return problems


def unfinished(path, text):
    if not re.match(r"^(src|bench|tools|tests)/", path) or path.startswith("tests/tidy/"):
        return []
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    return [(number, "left for others: do it, or open an issue")
            for number, line in enumerate(text.split("\n"), 1) if re.search(rf"\b({words})\b", line)]


def include_guard(path, text):
    if not re.match(r"^(src|tests|bench)/.*\.h$", path):
        return []
    return [] if "#pragma once" in text else [(1, "no #pragma once")]


TEXT_RULES = [layering, banned_calls, real_clock, machine_paths, file_size, columns, function_size,
              unfinished, include_guard]
