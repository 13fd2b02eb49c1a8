/* json_test.c - tests that invalid objects are refused, and that every message names the key or the
 * place. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/tests/test.h"

static const char *const keys[] = { "format", "n", NULL };

static const char *refusal(const char *text)
{
	static struct error err;
	json_t *root = NULL;
	uint64_t n = 0;
	int rc = json_parse(text, strlen(text), "x/1", keys, &root, &err);

	if (rc == 0) {
		rc = json_u64(root, "", "n", &n, &err);
		json_decref(root);
	}
	return rc == 0 ? "" : err.text;
}

TEST(refusals_name_what_is_wrong)
{
	static const struct {
		const char *text, *refusal;
	} cases[] = {
		{ "{\"format\": \"x/1\", \"n\": 3}", "" },
		{ "{\"format\": \"x/1\", \"n\": 3, \"n\": 3}", "duplicate" },
		{ "{\"format\": \"x/1\",\n\"n\": 3} 4", "line 2" },
		{ "[]", "expected a JSON object" },
		{ "", "is empty" },
		{ "{\"format\": \"x/2\"}", "format: expected \"x/1\", found \"x/2\"" },
		{ "{\"n\": 3}", "format: expected \"x/1\", found nothing" },
		{ "{\"format\": \"x/1\", \"m\": 3}", "m: unknown key" },
		{ "{\"format\": \"x/1\", \"n\": -1}", "n: expected a whole number, 0 or more" },
		{ "{\"format\": \"x/1\", \"n\": 2.0}", "found 2.0" },
		{ "{\"format\": \"x/1\"}", "n: expected a whole number, 0 or more, found nothing" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *found = refusal(cases[i].text);

		if (!strstr(found, cases[i].refusal) || !*cases[i].refusal != !*found)
			fail_msg("%s: \"%s\"", cases[i].text, found);
	}
}

TEST(messages_about_a_file_begin_with_its_path)
{
	char path[64];
	struct error err = { "" };
	json_t *root = NULL;

	snprintf(path, sizeof(path), "/tmp/skippipe-json-%d", (int)getpid());
	assert_int_equal(file_write(path, "\xef\xbb\xbf{}", 5, FILE_RESULT, &err), 0);
	/* The file begins with a byte order mark. */
	assert_int_equal(json_read_object(path, 64, &root, &err), 0);
	json_decref(root);
	assert_int_equal(file_write(path, "[]", 2, FILE_RESULT, &err), 0);
	assert_int_equal(json_read_object(path, 64, &root, &err), -EINVAL);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	unlink(path);
}
