/* error.h - the reason why a call failed, in words for the person who has to fix it.
 *
 * A function that can fail returns 0 or a negative errno code. If the caller passes a struct error,
 * the function writes into it what went wrong and where: the file, the key, the expected value.
 * Libraries fill in the struct; programs print it once.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

struct error {
	char text[512]; /* one line without a newline; "": no error */
};

/* Writes the message. A message that is too long keeps its beginning and its end, with " ... "
 * between the two. The arguments must not point into e. Returns code, so that a function can end
 * with `return error_set(err, -EINVAL, ...)`. e may be NULL. */
int error_set(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Inserts "PREFIX: " before the message. Returns code. e may be NULL. */
int error_prefix(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
