/* iteration_record.h - writes plans, iterations and commits to the record.
 *
 * Functions that return an int return 0 or a negative errno with the reason in err. */
#ifndef CONTROLLER_ITERATION_ITERATION_RECORD_H
#define CONTROLLER_ITERATION_ITERATION_RECORD_H

struct error;
struct iteration;
struct msg_commit;
struct msg_see_iteration;
struct planned;
struct run;

/* Records the plan that takes effect: in the store, as a file, and as an event in the JSON
 * lines. */
int record_plan(struct run *run, const struct planned *p, struct error *err);
int record_commit(struct iteration *it, const struct msg_commit *m,
		  const struct msg_see_iteration *see, struct error *err);
void record_iteration(struct iteration *it, const struct msg_see_iteration *see);

#endif
