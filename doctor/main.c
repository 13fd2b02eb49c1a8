/* skippipe-doctor: finds problems that would stop or slow a run, and names a remedy for each
 * problem. The program looks at this machine, or into the record of a run, and changes
 * nothing. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/process/options.h"
#include "base/process/output.h"
#include "doctor/finding.h"
#include "doctor/gpu.h"
#include "doctor/limits.h"
#include "doctor/machine.h"
#include "doctor/outside.h"
#include "doctor/run/complaints.h"
#include "doctor/run/live.h"
#include "doctor/run/members.h"
#include "doctor/run/pairs.h"
#include "doctor/run/recorded.h"
#include "doctor/storage.h"
#include "doctor/tcp.h"
#include "doctor/text_files.h"
#include "doctor/timekeeping.h"

enum { EXIT_UNKNOWN = 3, EXIT_USAGE = 4, CORPUS_FILES = 256 };

struct options {
	const char *device, *run_dir, *corpus_hash;
	char *corpus[CORPUS_FILES];
	size_t n_corpus;
	uint32_t agents, mbit, rtt_ms;
	bool json, all;
	/* The run to examine: the run's folder, or a token if the run's controller is running.
	 * NULL: this machine is examined. */
	char *run;
};

static int take_run(void *options, const char *word, struct error *err)
{
	struct options *o = options;

	if (o->run)
		return error_set(err, -EINVAL, "one RUN-DIR or TOKEN is examined (see --help)");
	/* The cast removes const: `word` points into argv of main, which C allows to change. */
	o->run = (char *)(uintptr_t)word;
	return 0;
}

static int take_corpus(void *options, const char *path, struct error *err)
{
	struct options *o = options;

	if (o->n_corpus == CORPUS_FILES)
		return error_set(err, -EINVAL, "--corpus %s: too many files", path);
	o->corpus[o->n_corpus++] = (char *)(uintptr_t)path;
	return 0;
}

static int take_device(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	o->device = text;
	return gpu_check_names(text, err);
}

#define AT(field) .at = offsetof(struct options, field)
static const struct options_row rows[] = {
	{ "device", OPTIONS_PARSED, "DEVICE", .parse = take_device,
	  .help = "the devices that shall compute, as for an agent (skippipe help agent): cpu, "
		  "cuda:1:bf16, cuda:all, or a list with commas [cpu]" },
	{ "run-dir", OPTIONS_TEXT, "DIR", ".",
	  "folder for the record or the checkpoints; need not exist", AT(run_dir) },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true,
	  .help = "read a corpus and print its hash" },
	{ "corpus-hash", OPTIONS_TEXT, "HEX", AT(corpus_hash),
	  .help = "the hash that the corpus must have" },
	{ "agents", OPTIONS_U32, "N", "9", "agents of the run, for the limit of open files",
	  AT(agents), .least = 1, .most = 1000 },
	{ "mbit", OPTIONS_U32, "N", "1000", "fastest link, Mbit/s, for the kernel's settings",
	  AT(mbit), .least = 1, .most = 1000000 },
	{ "rtt-ms", OPTIONS_U32, "N", "200", "longest round trip, ms, for the kernel's settings",
	  AT(rtt_ms), .least = 1, .most = 10000 },
	{ "all", OPTIONS_FLAG, AT(all), .help = "print what is well too, with its figures" },
	{ "json", OPTIONS_FLAG, AT(json), .help = "print skippipe.doctor/1 (docs/monitoring.md)" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT

static const struct options_table table = {
	rows, sizeof(rows) / sizeof(rows[0]), .word = take_run,
	/* clang-format off */
	.intro = "usage: skippipe doctor [options]\n"
		 "       skippipe doctor RUN-DIR|TOKEN [--all] [--json]\n"
		 "\n"
		 "Finds what would stop or slow a run on this machine, each with its remedy:\n"
		 "limits, memory, disk, clock, the kernel's network settings, the address,\n"
		 "the corpus, the driver, and one microbatch on the device against the CPU.\n"
		 "It changes nothing.\n"
		 "\n"
		 "With RUN-DIR, the folder of a run or of a measurement on the controller's\n"
		 "machine, or with TOKEN, of skippipe invite --role watcher, for a controller\n"
		 "elsewhere (@FILE reads it): which pairs of nodes cannot reach each other,\n"
		 "and at whose side; the worst links; lost nodes; unlike devices; complaints\n"
		 "of the journal that have a remedy.\n"
		 "\n",
	.end = "\n"
	       "Exit status: 0 all is well, 1 warnings: a run would be slow or fragile, 2\n"
	       "errors: a run cannot start or would fail, 3 nothing is known of the run, 4 wrong\n"
	       "usage.\n"
	/* clang-format on */
};

static bool needs_cuda(const struct options *o)
{
	return o->device && strstr(o->device, "cuda");
}

static void examine_device(struct findings *f, const struct options *o)
{
	struct gpu_driver driver;

	gpu_look_at_driver(&driver, "");
	gpu_check_driver(f, &driver, needs_cuda(o));
	gpu_check_all(f, o->device ? o->device : "cpu");
}

static void examine_machine(struct findings *f, const struct options *o)
{
	const struct tcp_link longest = { .bytes_s = o->mbit * 125e3, .rtt_s = o->rtt_ms * 1e-3 };
	const struct limits_need need = { .peers = o->agents > 1 ? o->agents - 1 : 1,
					  .cuda = needs_cuda(o) };
	struct machine machine;
	struct limits limits;
	struct storage storage;
	struct timekeeping clock;
	struct tcp tcp;
	struct outside outside;

	machine_look(&machine, "");
	machine_check(f, &machine);
	limits_look(&limits, "");
	limits_check(f, &limits, &need);
	storage_look(&storage, o->run_dir);
	storage_check(f, &storage);
	timekeeping_look(&clock);
	timekeeping_check(f, &clock);
	tcp_look(&tcp, "");
	tcp_check(f, &tcp, &longest);
	outside_look(&outside);
	outside_check(f, &outside);
	examine_device(f, o);
	/* The corpus is read last, because reading it may start threads, and examine_device must
	 * fork without threads. */
	if (o->n_corpus > 0)
		text_files_check(f, o->corpus, o->n_corpus, o->corpus_hash);
}

static int examine_run(struct findings *f, char *run, struct error *err)
{
	struct picture p = { .n = 0 };
	int rc = live_suits(run) ? live_read(&p, run, err) : recorded_read(&p, run, err);

	if (rc != 0)
		return rc;
	members_check(f, &p);
	pairs_check(f, &p);
	complaints_check(f, &p);
	picture_free(&p);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .device = NULL };
	struct findings found = { .all.n = 0 };
	struct error err = { "" };
	int rc;

	output_check_at_exit("skippipe doctor");
	rc = options_read(&table, &o, argc, argv, NULL, &err);
	if (rc > 0) {
		options_help(&table, stdout);
		return 0;
	}
	if (rc == 0 && o.corpus_hash && o.n_corpus == 0)
		rc = error_set(&err, -EINVAL, "--corpus-hash needs --corpus");
	if (rc < 0) {
		fprintf(stderr, "skippipe doctor: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (!o.run) {
		examine_machine(&found, &o);
	} else if (examine_run(&found, o.run, &err) != 0) {
		fprintf(stderr, "skippipe doctor: %s\n", err.text);
		return EXIT_UNKNOWN;
	}
	if (o.json)
		findings_print_json(&found, stdout);
	else
		findings_print(&found, o.all, stdout);
	rc = (int)findings_worst(&found);
	findings_free(&found);
	return rc;
}
