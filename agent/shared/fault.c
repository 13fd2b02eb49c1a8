/* fault.c - keeps the injected faults of an agent and computes their combined effects. */
#include "agent/shared/fault.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

static void heal_fault(struct faults *f, uint32_t fault)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->active[i].fault == fault) {
			f->active[i] = f->active[--f->n];
			return;
		}
}

int fault_apply(struct faults *f, const struct msg_fault *m, int64_t now_us)
{
	if (m->kind == FAULT_NONE) {
		heal_fault(f, m->fault);
		return 0;
	}
	if (fault_refusal(m->kind, m->factor) || fault_describe(m->kind)->stops_process)
		return -EINVAL;
	heal_fault(f, m->fault);
	if (f->n == FAULT_MOST)
		return -ENOSPC;
	f->active[f->n++] = (struct fault_active) {
		.fault = m->fault,
		.kind = m->kind,
		.peer = m->peer < 0 ? -1 : m->peer,
		.factor = m->factor,
		.ends_us = m->ttl_ms ? now_us + (int64_t)m->ttl_ms * 1000 : INT64_MAX,
	};
	return 0;
}

bool fault_expire(struct faults *f, int64_t now_us)
{
	uint32_t kept = 0, n = f->n;

	for (uint32_t i = 0; i < n; i++)
		if (f->active[i].ends_us > now_us)
			f->active[kept++] = f->active[i];
	f->n = kept;
	return kept < n;
}

int64_t fault_deadline_us(const struct faults *f)
{
	int64_t at = INT64_MAX;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->active[i].ends_us < at)
			at = f->active[i].ends_us;
	return at;
}

static bool concerns_peer(const struct fault_active *a, uint8_t kind, uint16_t to)
{
	return a->kind == kind && (a->peer < 0 || a->peer == to);
}

double fault_node_factor(const struct faults *f)
{
	double factor = 1;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->active[i].kind == FAULT_SLOW_NODE)
			factor *= (double)f->active[i].factor;
	return fmin(factor, 1e6);
}

bool fault_corrupt(const struct faults *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->active[i].kind == FAULT_CORRUPT)
			return true;
	return false;
}

double fault_link_factor(const struct faults *f, uint16_t to)
{
	double factor = 1;

	for (uint32_t i = 0; i < f->n; i++)
		if (concerns_peer(&f->active[i], FAULT_SLOW_LINK, to))
			factor *= (double)f->active[i].factor;
	return fmin(factor, 1e6);
}

double fault_loss(const struct faults *f, uint16_t to)
{
	double arrives = 1;

	for (uint32_t i = 0; i < f->n; i++)
		if (concerns_peer(&f->active[i], FAULT_LOSS, to))
			arrives *= 1 - (double)f->active[i].factor;
	return 1 - arrives;
}

bool fault_partitioned(const struct faults *f, uint16_t to)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (concerns_peer(&f->active[i], FAULT_PARTITION, to))
			return true;
	return false;
}
