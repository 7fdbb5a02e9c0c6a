#!/usr/bin/python3
"""Every class derived from runtime::Service is in the start/stop test of all services."""

import re
import sys

import tree

TEST = "src/postrider/server/services_pgtest.cpp"
DERIVED = re.compile(r"\bclass (\w+)(?: final)? : public runtime::Service\b")


def main():
    root = tree.ROOT
    test = (root / TEST).read_text()
    missing = []
    for header in sorted((root / "src/postrider").rglob("*.hpp")):
        for name in DERIVED.findall(tree.code_only(header.read_text())):
            if f'{{"{name}",' not in test:
                missing.append(f"{header.relative_to(root)}: {name} is not in {TEST}")
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
