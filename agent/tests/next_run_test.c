/* Tests that an agent joins another run. The loop of the agent continues meanwhile, and the agent
 * starts no thread. */
#include <errno.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/shared/worker.h"
#include "agent/state.h"
#include "agent/tests/cluster.h"
#include "base/tests/test.h"

enum { NODE = 1, NEXT = 78 };

static sem_t release;
static bool timed_out;

/* A job that waits until the test releases it, but only for a limited time. If the loop waits for
 * the job by mistake, the test thus fails and does not hang. */
static void hold(void *context, void *job)
{
	struct timespec by;

	(void)context, (void)job;
	clock_gettime(CLOCK_REALTIME, &by);
	by.tv_sec += 15;
	timed_out = sem_timedwait(&release, &by) != 0;
}

static bool is_ready(struct cluster *c)
{
	return c->nodes[NODE].ready;
}

static bool is_in_no_run(struct cluster *c)
{
	return !c->nodes[NODE].agent->run.welcomed;
}

static bool is_in_next_run(struct cluster *c)
{
	return c->nodes[NODE].agent->run.welcomed && c->nodes[NODE].agent->run.welcome.run == NEXT;
}

static bool beats_without_a_stage(struct cluster *c)
{
	return c->nodes[NODE].beat.stage == MSG_NO_STAGE;
}

/* Welcomes the node to the next run. */
static void welcome(struct cluster *c)
{
	c->nodes[NODE].ready = false;
	c->options.run = NEXT;
	cluster_welcome(c, NODE);
}

static struct cluster *gathered(void)
{
	static const uint8_t stages[] = { 0, 1 };
	struct cluster *c = cluster_make(2, stages);

	cluster_gather(c);
	return c;
}

/* The worker's job uses the memory of the previous run. Until the job ends, the agent sends
 * heartbeats, and the orders of the next run wait. */
TEST(another_run_begins_after_the_job)
{
	struct cluster *c = gathered();
	struct agent *a = c->nodes[NODE].agent;

	assert_int_equal(sem_init(&release, 0, 0), 0);
	assert_false(worker_busy(a->worker));
	worker_start(a->worker, hold, NULL, &a->job);
	welcome(c);
	cluster_assign(c, NODE, -1);
	cluster_until(c, is_in_no_run, "the end of the previous run");
	cluster_until(c, beats_without_a_stage, "a heartbeat");
	welcome(c); /* a second WELCOME, as from a restarted controller */
	cluster_assign(c, NODE, -1);
	cluster_turns(c, 50);
	assert_true(is_in_no_run(c));
	assert_non_null(a->compute);
	sem_post(&release);
	cluster_until(c, is_ready, "the stage of the next run");
	assert_false(timed_out);
	assert_true(is_in_next_run(c));
	assert_int_equal(cluster_troubles(c), 0);
	assert_int_equal(c->nodes[NODE].ready_said.iteration, 0);
	cluster_unmake(c);
	sem_destroy(&release);
}

/* The process has no free descriptors, so the agent could not start another worker thread. */
TEST(another_run_needs_no_new_thread)
{
	struct cluster *c = gathered();
	struct rlimit before, none;
	int fds[AGENT_FDS];

	cluster_turns(c, 10);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 3, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	welcome(c);
	cluster_until(c, is_in_next_run, "the next run");
	agent_fds(c->nodes[NODE].agent, fds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	cluster_assign(c, NODE, -1);
	cluster_until(c, is_ready, "the stage of the next run");
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}
