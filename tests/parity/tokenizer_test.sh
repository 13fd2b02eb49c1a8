#!/bin/bash
# Compares tokens with those of the tokenizers and sentencepiece packages, on mixed scripts, code and emoji. The test
# trains the tokenizers itself and is skipped if the packages cannot be imported. SKIPPIPE_PYTHON names another
# interpreter. PARITY_MB is the size of the text in megabytes; the packages take up to a minute for 10 MB.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import numpy, tokenizers' 2>/dev/null || {
	echo "$python cannot import numpy and tokenizers (SKIPPIPE_PYTHON names another)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/parity/tokenizer.py "${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model" "$work" "${PARITY_MB:-1.5}"
