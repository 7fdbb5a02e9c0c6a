#!/bin/sh
# Installs the judges if they are missing, then lets them judge. Usage: run.sh <print_signed>
set -eu
signer=$(realpath "$1")
cd "$(dirname "$0")"
exec 9< package-lock.json
flock 9  # end-to-end tests install the same packages
# npm writes this file when an installation is complete.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci
fi
exec 9<&-
exec node judge.mjs "$signer"
