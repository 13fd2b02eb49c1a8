/* Tests the places where NVIDIA's libraries are searched for. The test puts another library
 * there. */
#include "model/cuda/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"

static const char *const names[] = { "_assert_true", "_fail" };

static int try_open(const char *file, struct error *err)
{
	void *functions[2] = { NULL, NULL };
	const struct nvidia_library what = { file,     "cuBLAS",
					     "cublas", "install libcublas, version 99",
					     names,    2 };
	int rc = nvidia_library_open(&what, functions, err);

	if (rc == 0)
		assert_true(functions[0] && functions[1]);
	return rc;
}

/* Makes an environment of Python whose package `package` of NVIDIA has the library. */
static void check_package(const char *package)
{
	char root[] = "/tmp/skippipe-nvidia-XXXXXX", folder[PATH_MAX], link[PATH_MAX + 32];
	struct error err = { "" };
	Dl_info cmocka;

	assert_non_null(mkdtemp(root));
	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "_assert_true"), &cmocka), 0);
	snprintf(folder, sizeof(folder), "%s/lib/python3.12/site-packages/nvidia/%s/lib", root,
		 package);
	assert_int_equal(file_make_folder(folder, &err), 0);
	snprintf(link, sizeof(link), "%s/libnowhere.so.99", folder);
	assert_int_equal(symlink(cmocka.dli_fname, link), 0);

	unsetenv("VIRTUAL_ENV");
	assert_int_equal(try_open("libnowhere.so.99", &err), -ENODEV);
	assert_non_null(strstr(err.text, "libnowhere.so.99"));
	assert_non_null(strstr(err.text, "version 99"));
	setenv("VIRTUAL_ENV", root, 1);
	assert_int_equal(try_open("libnowhere.so.99", &err), 0);
	file_remove_folder(root);
}

/* In an image with PyTorch, the library is only among the environment's Python packages. It is in a
 * package of its own or, from CUDA 13 on, in a package with other libraries. */
TEST(a_library_among_python_packages_is_found)
{
	check_package("cu13");
	check_package("cublas");
}

TEST(a_missing_function_is_named)
{
	static const char *const unknown[] = { "_assert_true", "_no_such_function" };
	struct error err = { "" };
	void *functions[2];
	Dl_info cmocka;

	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "_assert_true"), &cmocka), 0);
	assert_int_equal(nvidia_library_open(&(struct nvidia_library){ .file = cmocka.dli_fname,
								       .title = "cuBLAS",
								       .package = "cublas",
								       .remedy = "install it",
								       .names = unknown,
								       .n = 2 },
					     functions, &err),
			 -ENODEV);
	assert_non_null(strstr(err.text, "_no_such_function"));
}
