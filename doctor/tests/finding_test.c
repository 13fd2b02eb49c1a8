/* Tests the list of findings, and how it is printed as a table and as JSON. */
#include "doctor/finding.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/tests/test.h"

static char *print(const struct findings *f, int form)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (form == 2)
		assert_int_equal(findings_print_json(f, to), 0);
	else
		findings_print(f, form == 1, to);
	fclose(to);
	return text;
}

static void add_three(struct findings *f)
{
	finding_add(f, "files", FINDING_OK, "%d files", 8192);
	finding_add(f, "clock", FINDING_WARNING, "not synchronised");
	finding_remedy(f, "start %s", "chrony");
	finding_add(f, "disk", FINDING_ERROR, "full\n\x1b[31m");
	finding_remedy(f, "free space");
}

TEST(errors_come_first_and_what_is_well_is_one_line)
{
	struct findings f = { .all.n = 0 };
	char *text;

	add_three(&f);
	finding_add(&f, "files", FINDING_OK, "again");
	text = print(&f, 0);
	assert_string_equal(text, "error    disk         full??[31m\n"
				  "                      remedy: free space\n"
				  "warning  clock        not synchronised\n"
				  "                      remedy: start chrony\n"
				  "ok       files\n"
				  "1 error, 1 warning\n");
	free(text);
	text = print(&f, 1);
	assert_non_null(strstr(text, "ok       files        8192 files\n"));
	free(text);
	assert_int_equal(findings_worst(&f), FINDING_ERROR);
	findings_free(&f);
	assert_int_equal(findings_worst(&f), FINDING_OK);
}

TEST(no_line_is_wider_than_100_columns)
{
	struct findings f = { .all.n = 0 };
	char *text, *line, *rest;

	finding_add(&f, "kernel", FINDING_WARNING, "%s",
		    "word word word word word word word word word word word word word word word "
		    "word word word word word word word word word word word word word word word");
	finding_remedy(&f, "%s", f.all.list[0].found);
	rest = text = print(&f, 0);
	while ((line = strsep(&rest, "\n")))
		assert_true(strlen(line) <= 100);
	free(text);
	findings_free(&f);
}

TEST(scripts_get_each_finding)
{
	struct findings f = { .all.n = 0 };
	json_t *root, *list;
	char *text;

	add_three(&f);
	text = print(&f, 2);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "format")),
			    "skippipe.doctor/1");
	assert_int_equal(json_integer_value(json_object_get(root, "errors")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "warnings")), 1);
	list = json_object_get(root, "findings");
	assert_int_equal(json_array_size(list), 3);
	for (size_t i = 0; i < 3; i++)
		for (int k = 0; k < 4; k++)
			assert_true(json_is_string(json_object_get(
				json_array_get(list, i),
				(const char *const[]){ "check", "level", "found", "remedy" }[k])));
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "level")),
			    "warning");
	json_decref(root);
	free(text);
	findings_free(&f);
}

TEST(bytes_that_are_no_text_leave_json_valid)
{
	struct findings f = { .all.n = 0 };
	char *text;
	json_t *root;

	finding_add(&f, "disk", FINDING_ERROR, "%s", "\xff\xfe");
	text = print(&f, 2);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	json_decref(root);
	free(text);
	findings_free(&f);
}
