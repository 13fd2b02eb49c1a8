/* Help, errors and formats of skippipe-plan's commands, and how they read a cluster. */
#include "schedule/program/program.h"

#include <stdio.h>
#include <string.h>

const char program_help[] =
	"usage: skippipe plan CLUSTER [--skip K[/S] | --skip-share S%:K | --path-length L]\n"
	"           [--always STAGE,...]\n"
	"           [--algorithm best|cbs|no-tc2|dtfm|dtfm-skip]\n"
	"           [--budget SECONDS | --evaluations N] [--seed N] [--threads N]\n"
	"           [--assignment free|given] [--sync-limit SECONDS]\n"
	"           [--overlap-sync] [--from PLAN] [--without NODE,...] [--keep-batch]\n"
	"           [--no-swaps] [--wire FORMAT] [--sum-wire FORMAT] [-o plan.json]\n"
	"       skippipe plan CLUSTER (--skip-schedule K,... | --recipe speed|robust)\n"
	"           --iterations N [--stack] [--format json|text] [options as above]\n"
	"       skippipe simulate CLUSTER PLAN [--trace trace.json] [--format json|text]\n"
	"           [--wire FORMAT] [--sum-wire FORMAT]\n"
	"\n"
	"plan writes a plan as JSON to standard output, or to the file given with -o. A file\n"
	"named - is read from standard input. Without a budget the search takes one second;\n"
	"without --skip a third of the stages is skipped. --skip-share 30%:2 lets 30% of each\n"
	"data node's microbatches, rounded to the nearest number, skip 2 stages; the rest visit\n"
	"all stages. Every microbatch visits stage 0, the stages that CLUSTER names\n"
	"(always_visited), and the stages of --always. Nodes with a stage in CLUSTER keep it,\n"
	"unless --assignment free is given. A free assignment minimises the iteration plus its\n"
	"sums of gradients. With --sync-limit it minimises the iteration, among assignments\n"
	"whose sums take at most that long. --overlap-sync lets each stage sum its gradients\n"
	"after its own last task. simulate predicts the times of a plan on a cluster and checks\n"
	"the rules.\n"
	"With --skip-schedule or --recipe, plan writes a plan for each phase of a run of N\n"
	"iterations, twice: with one allocation of nodes to stages for all phases, and with an\n"
	"allocation for each phase, between which nodes move. --recipe adds the last stage to\n"
	"--always and sets --stack: stages start from trained stages. It also sets\n"
	"--no-swaps: paths visit stages in ascending order. Each search has the whole budget.\n"
	"--format text prints a table.\n"
	"CLUSTER gives sizes and times in fp32. --wire fp32|bf16|q8|q6 shortens activations and\n"
	"their gradients, --sum-wire fp32|q8|q6|q4 shortens the sums. --wire needs links and\n"
	"activation_bytes in CLUSTER; the times of a sync_pair_s shrink as a whole.\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 infeasible or a rule is broken.\n";

int program_refuse(const char *why)
{
	if (why)
		fprintf(stderr, "skippipe: %s\n", why);
	fputs(program_help, stderr);
	return USAGE;
}

int program_fail(const struct error *err, int status)
{
	fprintf(stderr, "skippipe: %s\n", err->text);
	return status;
}

bool program_parse_choice(const char *text, const char *yes, const char *no, bool *out)
{
	*out = strcmp(text, yes) == 0;
	return *out || strcmp(text, no) == 0;
}

const char *wires_take_activations(struct wires *w, const char *text)
{
	return tensor_format_parse(text, &w->activations) == 0 &&
			       tensor_format_suits_activations(w->activations)
		? NULL : "--wire: expected fp32, bf16, q8 or q6";
}

const char *wires_take_sums(struct wires *w, const char *text)
{
	return tensor_format_parse(text, &w->sums) == 0 && tensor_format_suits_sums(w->sums)
		? NULL : "--sum-wire: expected fp32, q8, q6 or q4";
}

int program_read_cluster(const char *path, const struct wires *w, struct cluster **c,
			 struct error *err)
{
	const struct cluster_share share = {
		.activations = tensor_format_activation_share(w->activations),
		.sums = tensor_format_sum_share(w->sums),
		.refuse_delays = true,
	};
	int rc = cluster_read_share(path, &share, c, err);

	if (rc == 0 && w->activations != FORMAT_FP32) /* fp32: as in the file */
		(*c)->formats.wire = w->activations;
	if (rc == 0)
		(*c)->formats.sum_wire = w->sums;
	return rc;
}
