/* Tests that the allocators give zeroed memory and exact copies, and end the program when memory
 * runs out. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/tests/test.h"

/* Lets a sanitizer return NULL for a block that is too large, as the plain C library does. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

TEST(blocks_are_zeroed_and_never_null)
{
	unsigned char *a = alloc_array(100, 3), *b = alloc_new(7), *none = alloc_array(0, 8);

	for (int i = 0; i < 300; i++)
		assert_int_equal(a[i], 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(b[i], 0);
	assert_non_null(none);
	free(a);
	free(b);
	free(none);
}

TEST(a_resized_block_keeps_its_bytes)
{
	uint32_t *block = alloc_resize(NULL, 2, sizeof(*block));

	block[0] = 11;
	block[1] = 22;
	block = alloc_resize(block, 1000, sizeof(*block));
	assert_int_equal(block[0], 11);
	assert_int_equal(block[1], 22);
	block = alloc_resize(block, 0, sizeof(*block));
	assert_non_null(block);
	free(block);
}

TEST(copies_are_exact)
{
	char *text = alloc_string("stage 3"), *made = alloc_format("node %d of %s", 7, text);
	char *bytes = alloc_copy("a\0b", 3);

	assert_string_equal(text, "stage 3");
	assert_string_equal(made, "node 7 of stage 3");
	assert_memory_equal(bytes, "a\0b", 3);
	free(text);
	free(made);
	free(bytes);
}

static void array_overflows(void)
{
	free(alloc_array(SIZE_MAX / 2, 3));
}

static void block_is_larger_than_the_memory(void)
{
	free(alloc_new(SIZE_MAX / 4));
}

static void resized_block_overflows(void)
{
	free(alloc_resize(NULL, SIZE_MAX / 2, 3));
}

static void reserved_array_overflows(void)
{
	size_t room = 0;
	uint64_t *array = NULL;

	array_reserve(&array, &room, SIZE_MAX / 4, sizeof(*array));
	free(array);
}

static void array_of_an_arena_overflows(void)
{
	struct arena a = { 0 };

	arena_array(&a, SIZE_MAX / 2, 3);
	arena_free(&a);
}

static void say_restored(void)
{
	ssize_t ignored = write(STDERR_FILENO, "restored, ", 10);

	(void)ignored;
}

/* Runs a function in a child. Returns the child's exit status and gives what it printed. */
static int run_in_child(void (*allocate)(void), char *text, size_t size)
{
	int fds[2], status;
	ssize_t n;
	size_t length = 0;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(fds[1], STDERR_FILENO);
		alloc_before_exit(say_restored);
		allocate();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + length, size - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(without_memory_the_program_ends_with_a_message)
{
	static void (*const cases[])(void) = { array_overflows, block_is_larger_than_the_memory,
					       resized_block_overflows, reserved_array_overflows,
					       array_of_an_arena_overflows };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[4096], size[32];

		assert_int_equal(run_in_child(cases[i], text, sizeof(text)), 1);
		snprintf(size, sizeof(size), "%zu bytes\n", i == 1 ? SIZE_MAX / 4 : SIZE_MAX);
		assert_non_null(strstr(text, "restored, alloc_test: out of memory: "));
		assert_non_null(strstr(text, size));
	}
}
