#!/usr/bin/env bash
# Installs the client libraries into a folder, beside the checks that drive them. Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")"
folder=$1
mkdir -p "$folder"
cp ./*.mjs ./*.py package.json requirements.txt "$folder"
cd "$folder"
if ! cmp -s package.json .installed.json; then
  npm install --no-audit --no-fund --no-package-lock --loglevel=error
  cp package.json .installed.json
fi
if ! cmp -s requirements.txt .installed.txt; then
  python3 -m venv --clear venv
  venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt .installed.txt
fi
