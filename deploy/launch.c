/* The launcher of a bundle (deploy/bundle.sh). Each program in the bundle's bin/ folder is a link
 * to this launcher. The link has the name of the program that the launcher then starts.
 *
 * A program that was linked on a new system does not start with the C library of an older system.
 * A bundle therefore has its own C library, loader and other libraries. This launcher is linked
 * statically, runs anywhere, and starts the real program with them:
 *
 *     bin/skippipe, bin/skippipe-agent, ...   the launcher
 *     bin/skippipe-loader                     the loader of the C library (ld.so)
 *     lib/                                    libraries
 *     lib/programs/skippipe, ...              the programs
 *
 * The launcher names the libraries on the loader's command line. It does not set LD_LIBRARY_PATH,
 * because a program passes its environment on to commands of the system. In a program started
 * this way, /proc/self/exe names the loader. Programs look for each other in the folder of
 * /proc/self/exe, so the loader lies in bin/. If the bundle lacks a library, such as a GPU's
 * driver, the loader searches the system for it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char self[PATH_MAX], loader[PATH_MAX + 32], libraries[PATH_MAX + 32], program[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char **args = calloc((size_t)argc + 6, sizeof(*args));
	char *name;
	int k = 0;

	if (n < 0 || !args) {
		perror("skippipe: /proc/self/exe");
		return 1;
	}
	self[n] = '\0';
	name = strrchr(self, '/');
	*name++ = '\0';
	snprintf(loader, sizeof(loader), "%s/skippipe-loader", self);
	snprintf(libraries, sizeof(libraries), "%s/../lib", self);
	snprintf(program, sizeof(program), "%s/../lib/programs/%s", self, name);
	args[k++] = loader;
	args[k++] = "--library-path";
	args[k++] = libraries;
	args[k++] = "--argv0";
	args[k++] = argc > 0 ? argv[0] : name;
	args[k++] = program;
	for (int i = 1; i < argc; i++)
		args[k++] = argv[i];
	execv(loader, args);
	perror(loader);
	return 127;
}
