"""Answers questions with transformers and lm_eval, and compares the results with those of skippipe eval --choices.

choices.py FOLDER SEQUENCE: FOLDER/hf is the exported model, FOLDER/choices.jsonl has the questions, FOLDER/ours.jsonl the
output of skippipe. Exit status 1: they differ too much.
"""
import json
import logging
import sys

import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import AutoModelForCausalLM, AutoTokenizer

transformers.utils.logging.disable_progress_bar()
logging.getLogger("lm_eval").setLevel(logging.ERROR)
LOSS = 1e-5  # limit of a loss's relative error

work, sequence = sys.argv[1], int(sys.argv[2])
questions = [json.loads(line) for line in open(work + "/choices.jsonl", encoding="utf-8")]
*ours, summary = [json.loads(line) for line in open(work + "/ours.jsonl", encoding="utf-8")]
model = AutoModelForCausalLM.from_pretrained(work + "/hf", dtype=torch.float32).eval()
tokenizer = AutoTokenizer.from_pretrained(work + "/hf")
harness = HFLM(pretrained=model, tokenizer=tokenizer, max_length=sequence, batch_size=1, device="cpu", prefix_token_id=0)


def transformers_loss(context, choice):
    """Returns the sum of the losses of the choice's tokens, and the number of these tokens."""
    tokens = tokenizer.encode(context + choice)
    counted = len(tokens) - len(tokenizer.encode(context.rstrip()))
    tokens = torch.tensor([tokens[-sequence - 1 :]])
    with torch.no_grad():
        logits = model(tokens[:, :-1]).logits
    losses = torch.nn.functional.cross_entropy(logits[0].double(), tokens[0, 1:], reduction="none")
    return losses[-counted:].sum().item(), counted


def lowest(losses):
    return min(range(len(losses)), key=losses.__getitem__)


assert len(ours) == len(questions) == summary["questions"]
requests = [Instance("loglikelihood", q, (q["context"], choice), i) for q in questions for i, choice in enumerate(q["choices"])]
sums = iter([-sum for sum, _ in harness.loglikelihood(requests, disable_tqdm=True)])
worst = {"transformers": 0.0, "lm_eval": 0.0}
right = {"accuracy": 0, "accuracy_per_token": 0}
normalised = 0
for question, line in zip(questions, ours):
    expected = [transformers_loss(question["context"], choice) for choice in question["choices"]]
    theirs = {"transformers": [loss for loss, _ in expected], "lm_eval": [next(sums) for _ in question["choices"]]}
    for name, losses in theirs.items():
        worst[name] = max([worst[name], *(abs(a - b) / b for a, b in zip(line["losses"], losses))])
    if line["tokens"] != [counted for _, counted in expected]:
        sys.exit(f"line {line['line']}: {line['tokens']} tokens, expected {expected}")
    right["accuracy"] += lowest(theirs["lm_eval"]) == question["answer"]  # computed as lm_eval's acc
    right["accuracy_per_token"] += lowest([loss / counted for loss, counted in expected]) == question["answer"]
    # acc_norm divides a loss by the number of characters of the choice, and skippipe by the number of tokens. If
    # every token is one character, as in some of the questions about bytes, the two results agree.
    if line["tokens"] == [len(choice) for choice in question["choices"]]:
        normalised += 1
        if line["chosen_per_token"] != lowest([a / len(b) for a, b in zip(theirs["lm_eval"], question["choices"])]):
            sys.exit(f"line {line['line']}: lm_eval's acc_norm makes another choice")

print("largest relative error of a loss:", ", ".join(f"{error:.1e} ({name})" for name, error in worst.items()))
print(f"right of {len(questions)}: {right}; compared with acc_norm: {normalised}")
if not max(worst.values()) <= LOSS:
    sys.exit("the losses differ")
for key, n in right.items():
    if abs(summary[key] - n / len(questions)) > 1e-6:
        sys.exit(f"{key} is {summary[key]}, expected {n} of {len(questions)}")
