/* network.c - opens the controller's network (network.h).
 *
 * The controller and the replay server listen in the same way, with the same limits on messages. */
#include "controller/network/network.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/user_folder.h"

/* Finds the path of a file. `given` is the path on the command line. If `given` is NULL, the file
 * is this user's own, which `skippipe invite` uses too. */
static int find_file(char out[PATH_MAX], const char *given, const char *option, const char *name,
		     struct error *err)
{
	int rc;

	if (given)
		return snprintf(out, PATH_MAX, "%s", given) < PATH_MAX
			       ? 0
			       : error_set(err, -ENAMETOOLONG, "--%s: too long", option);
	rc = user_state_file(out, PATH_MAX, name, err);
	return rc == 0 ? 0 : error_prefix(err, rc, "give --%s", option);
}

int network_open(const struct options *o, uint32_t roles, const struct log *log,
		 struct keys_identity **identity, struct keys_list **admitted, struct post **post,
		 char bound[LINK_ADDRESS_SIZE], struct error *err)
{
	struct post_options po = { 0 };
	char key[KEYS_TEXT_SIZE], path[PATH_MAX];
	int rc = find_file(path, o->key, "key", "controller.key", err);

	if (rc == 0)
		rc = o->key ? keys_load(identity, path, err)
			    : keys_load_or_make(identity, path, err);
	if (rc == 0)
		rc = find_file(path, o->admitted, "admitted", "admitted", err);
	if (rc == 0)
		rc = keys_list_open(admitted, path, err);
	if (rc != 0)
		return rc;
	if (keys_list_count(*admitted) == 0)
		log_line(log, LOG_WARN,
			 "--admitted %s: %s: nobody may join before skippipe invite or admit", path,
			 access(path, F_OK) == 0 ? "has no keys" : strerror(errno));
	po.identity = *identity;
	po.admitted = *admitted;
	po.roles = roles;
	/* Two sessions may have one agent's key: the controller decides which of them keeps the
	 * node (rivals.c). */
	po.shared_roles = KEYS_ROLE_BIT(KEYS_AGENT);
	po.message_most_bytes = 64u << 20;
	po.retained_most_bytes = 64u << 20;
	po.charge_per_s = NETWORK_CHARGE_PER_S;
	rc = post_open(post, &po, err);
	if (rc == 0)
		rc = post_listen(*post, o->listen, bound, err);
	if (rc != 0)
		return rc;
	keys_text(keys_public_of(*identity), key);
	log_line(log, LOG_INFO, "listening at %s with key %s", bound, key);
	return 0;
}
