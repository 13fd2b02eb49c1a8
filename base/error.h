/* error.h - why a call failed, in words for the person who has to mend it.
 *
 * A function that can fail returns 0 or a negative errno code and, when the caller passes a
 * struct error, says there what went wrong and where: the file, the key, what was expected.
 * Libraries fill it in; programs print it, once.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

struct error {
	char text[512]; /* one line, no newline at its end; "" when nothing was said */
};

/* Writes the message (cut at the buffer's end) and returns code, so that a function can end
 * with `return error_set(err, -EINVAL, ...)`. e may be NULL. */
int error_set(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "where: " in front of the message already there; returns code. */
int error_prefix(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
