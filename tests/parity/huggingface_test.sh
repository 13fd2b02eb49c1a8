#!/bin/bash
# Models that the transformers library saves are imported and give the same logits. After an export, the library reads
# the models again, and the logits are still the same. The test is skipped if torch, transformers or safetensors cannot
# be imported. SKIPPIPE_PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/../.."
python=${SKIPPIPE_PYTHON:-python3}
"$python" -c 'import torch, transformers, safetensors' 2>/dev/null || {
	echo "$python cannot import torch, transformers and safetensors (SKIPPIPE_PYTHON names another)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/parity/huggingface.py "${SKIPPIPE_BUILD:-$PWD/build}/bin/skippipe-model" "$work"
