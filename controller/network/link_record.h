/* link_record.h - writes links to the record: cuts, measured delays, and the emulated network. */
#ifndef CONTROLLER_NETWORK_LINK_RECORD_H
#define CONTROLLER_NETWORK_LINK_RECORD_H

struct error;
struct link_failure;
struct link_table;
struct members;
struct run;

/* Records that a link has failed or works again. */
void record_cut(struct run *run, const struct link_failure *k);
/* Writes the cluster with the delays measured so far. */
int record_cluster(struct members *members, struct error *err);
/* Adds to the recorded cluster the links and slots of nodes that joined after the first plan, if
 * has_unrecorded_nodes is set. Without these entries, a resumed run would know no link of such a
 * node, and no plan would use the node. Called in every turn. Waits while the record cannot be
 * written. */
void record_late_nodes(struct members *members);
/* Writes the links of the emulated network, if they are known. */
int record_emulated_links(struct members *members, struct error *err);
/* Returns the recorded links of the emulated network, which the caller frees; NULL: there are
 * none. */
struct link_table *record_emulated_links_again(const struct members *members);

#endif
