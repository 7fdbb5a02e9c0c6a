#!/usr/bin/env python3
"""Embeds text files in a generated C++ header: embed_files.py FOLDER OUT FILE… makes docs.css `docs_css` in namespace
postrider::FOLDER::files."""

import pathlib
import re
import sys

WRAP = 4000  # characters of one string literal


def literal(text):
    pieces = [text[at : at + WRAP] for at in range(0, len(text), WRAP)] or [""]
    return "\n".join(f'    R"embedded({piece})embedded"' for piece in pieces)


def main():
    folder, out, files = sys.argv[1], pathlib.Path(sys.argv[2]), sorted(sys.argv[3:])
    text = f"// Made by tools/embed_files.py.\n#pragma once\n\n#include <string_view>\n\nnamespace postrider::{folder}::files {{\n"
    for file in files:
        path = pathlib.Path(file)
        name = re.sub(r"\W", "_", path.name)
        text += f"\ninline constexpr std::string_view {name} =\n{literal(path.read_text(encoding='utf-8'))};\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + f"\n}}  // namespace postrider::{folder}::files\n", encoding="utf-8")


if __name__ == "__main__":
    main()
