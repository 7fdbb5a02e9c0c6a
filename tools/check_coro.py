#!/usr/bin/python3
"""Rejects the coroutine shapes that g++ 12 miscompiles.

g++ 12.2 destroys some temporaries twice when they live in the same full expression as a co_await. So an expression
with co_await names existing variables only: no braced temporary, no lambda, no ?:, no second co_await; and no lambda
with captures is itself a coroutine (its captures die with the lambda object, not with the coroutine). A statement,
`sql::find{.id = id}`, may be there: pg::Query requires that it has nothing to destroy.
"""

import re
import sys

import tree

AWAIT = re.compile(r"\bco_await\b")
LAMBDA = re.compile(r"(?:(?<=[(,=?:{&|;])|(?<=return)|^)\s*\[(?!\[)([^\[\]]*)\]\s*(?:\(|\{|mutable\b)", re.MULTILINE)
STATEMENT = re.compile(r"\bsql::\w+\s*\{")
CLOSING = {"(": ")", "[": "]", "{": "}"}
# `if (`, `while (` and the like end the expression that stands in their parentheses.
STATEMENT_WORDS = re.compile(r"\b(?:if|while|for|switch|catch)\s*(?:constexpr\s*)?$")


def closing(text, start):
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at
    return len(text) - 1


def full_expression(text, at):
    """(start, end) of the full expression around `at`: to the next ; { or } and the brackets of a statement head."""
    depth = 0
    start = at
    while start > 0:
        ch = text[start - 1]
        if ch in ")]":
            depth += 1
        elif ch == "}":
            if depth == 0:
                break
            depth += 1
        elif ch in "([":
            if depth == 0 and ch == "(" and STATEMENT_WORDS.search(text[max(0, start - 24):start - 1]):
                break
            depth = max(0, depth - 1)
        elif ch == "{":
            if depth == 0 and is_block(text, start - 1):
                break
            depth = max(0, depth - 1)
        elif ch == ";" and depth == 0:
            break
        start -= 1
    depth = 0
    end = at
    while end < len(text):
        ch = text[end]
        if ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
            if depth < 0 and (ch == "}" or STATEMENT_WORDS.search(text[max(0, start - 24):max(0, start - 1)])):
                break
        elif ch == ";" and depth <= 0:
            break
        end += 1
    return start, end


def is_block(text, brace):
    """A `{` that opens a block of statements rather than a braced value."""
    before = text[:brace].rstrip()
    return before.endswith((")", ";", "{", "}", "else", "do", "try", "noexcept", "mutable", "const", "override", ">"))


def without_lambda_bodies(expression):
    """The expression with each lambda replaced by a word, and whether there was any."""
    seen = False
    while match := LAMBDA.search(expression):
        seen = True
        brace = expression.find("{", match.end() - 1)
        if brace < 0:
            break
        opening = expression.index("[", match.start())
        expression = expression[:opening] + " a_lambda " + expression[closing(expression, brace) + 1:]
    return expression, seen


def without_statements(expression):
    """The expression with the braces of each `sql::name{…}` replaced by parentheses."""
    while match := STATEMENT.search(expression):
        opening = match.end() - 1
        end = closing(expression, opening)
        expression = f"{expression[:opening]}({expression[opening + 1:end]}){expression[end + 1:]}"
    return expression


def faults_of_await(text, at):
    start, end = full_expression(text, at)
    expression = text[start:end]
    # A lambda body that contains this very co_await is its own world: look at the operand alone.
    bare, has_lambda = without_lambda_bodies(expression)
    if not AWAIT.search(bare):
        return
    if has_lambda:
        yield "a lambda in an expression with co_await"
    if re.search(r"[\w>(,]\s*\{\s*[^\s}]", without_statements(bare)):
        yield "a braced temporary in an expression with co_await"
    if "?" in bare:
        yield "?: in an expression with co_await"
    if len(AWAIT.findall(bare)) > 1:
        yield "two co_await in one expression"


def faults_of_lambdas(text):
    for match in LAMBDA.finditer(text):
        if not match.group(1).strip():
            continue
        brace = text.find("{", match.end() - 1)
        if brace < 0:
            continue
        body, _ = without_lambda_bodies(text[brace + 1:closing(text, brace)])
        if re.search(r"\bco_(?:await|return|yield)\b", body):
            yield match.start(1), "a lambda with captures is a coroutine"


def faults(source):
    """(line, what) for each bad shape."""
    text = tree.code_only(source)
    found = set()
    for match in AWAIT.finditer(text):
        for what in faults_of_await(text, match.start()):
            found.add((tree.line_of(text, match.start()), what))
    for offset, what in faults_of_lambdas(text):
        found.add((tree.line_of(text, offset), what))
    return sorted(found)


SELF_TEST = [
    ("auto x = co_await f(a, b);", 0),
    ("if (co_await f(a)) { g(); }", 0),
    ("for (auto& row : rows) co_await f(row);", 0),
    ("void f() { co_await g(); co_await h(); }", 0),
    ("Task<void> f() {\n  const auto x = co_await g();\n  if (x) co_return;\n}", 0),
    ("auto x = co_await f(Batch{1, 2});", 1),
    ("auto x = co_await f({1, 2});", 1),
    ("auto x = co_await f([&] { return 1; });", 1),
    ("auto x = ok ? co_await f() : 2;", 1),
    ("auto x = co_await f(co_await g());", 1),
    ("auto x = co_await f() + co_await g();", 1),
    ("auto x = [this]() -> Task<void> { co_await f(); };", 1),
    ("auto x = []() -> Task<void> { co_await f(); };", 0),
    ("call([this] { spawn(f()); });", 0),
    ("// co_await f({1})\n", 0),
    ("co_await Wait{loop};", 1),
    ("co_await link.run(sql::find{.id = id, .name = name_of(id)});", 0),
    ("co_await link.run(sql::find{.id = Id{1}});", 1),
    ("co_return co_await f(a);", 0),
]


def main():
    for source, wanted in SELF_TEST:
        if len(faults(source)) != wanted:
            sys.exit(f"check_coro.py is wrong about: {source}\n  found {faults(source)}")
    count = 0
    for path in tree.files(".cpp", ".hpp"):
        for line, what in faults(tree.read(path)):
            print(f"{path}:{line}: {what}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
