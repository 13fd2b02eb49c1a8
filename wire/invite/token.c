/* token.c - writes and reads the tokens of invitations (token.h). This module wipes each copy of
 * the secret as soon as the copy is not needed. */
#include "wire/invite/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "base/not_text.h"
#include "wire/address.h"
#include "wire/identity.h"

#define VERSION 1
#define CHECK_BYTES 4
#define BYTES_MOST (TOKEN_SIZE / 4 * 3)
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define HEAD_BYTES (2 + 2 * KEYS_BYTES + 1) /* version, role, two keys, number of addresses */

bool token_is(const char *text)
{
	return strncmp(text, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) == 0;
}

void token_wipe(char *text)
{
	sodium_memzero(text, strlen(text));
}

static bool is_address(const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	for (const char *c = address; *c != 0; c++) {
		if (*c <= ' ' || *c > '~')
			return false;
	}
	return strncmp(address, "ipc://", 6) == 0 ? address[6] != 0
						  : address_split(address, host, port);
}

static void put_check(uint8_t *bytes, size_t size)
{
	crypto_generichash(bytes + size, crypto_generichash_BYTES_MIN, bytes, size, NULL, 0);
}

int token_print(const struct token *token, const struct keys_identity *invitation,
		char out[TOKEN_SIZE], struct error *err)
{
	uint8_t bytes[BYTES_MOST + crypto_generichash_BYTES_MIN] = { VERSION,
								     (uint8_t)token->role };
	size_t size = 2;
	int rc = 0;
	if (token->n_addresses == 0 || token->n_addresses > TOKEN_ADDRESSES)
		return error_set(err, -EINVAL, "a token needs 1 to %d addresses of the controller",
				 TOKEN_ADDRESSES);
	memcpy(bytes + size, token->controller.bytes, KEYS_BYTES);
	memcpy(bytes + size + KEYS_BYTES, invitation->secret, KEYS_BYTES);
	size += 2 * (size_t)KEYS_BYTES;
	bytes[size++] = (uint8_t)token->n_addresses;
	for (unsigned i = 0; rc == 0 && i < token->n_addresses; i++) {
		const char *address = token->addresses[i];
		const size_t length = strlen(address);
		if (!is_address(address) || size + 1 + length > BYTES_MOST - CHECK_BYTES) {
			rc = error_set(err, -EINVAL,
				       "%.80s: expected the controller's address, tcp://HOST:PORT",
				       address);
			break;
		}
		bytes[size++] = (uint8_t)length;
		memcpy(bytes + size, address, length);
		size += length;
	}
	if (rc == 0) {
		put_check(bytes, size);
		strcpy(out, TOKEN_PREFIX);
		sodium_bin2base64(out + strlen(TOKEN_PREFIX), TOKEN_SIZE - strlen(TOKEN_PREFIX),
				  bytes, size + CHECK_BYTES, BASE64);
	}
	sodium_memzero(bytes, sizeof(bytes));
	return rc;
}

/* Reads the controller's addresses, which follow the head. Returns false if the bytes are no
 * addresses. */
static bool read_addresses(const uint8_t *at, const uint8_t *end, struct token *out)
{
	if (out->n_addresses == 0 || out->n_addresses > TOKEN_ADDRESSES)
		return false;
	for (unsigned i = 0; i < out->n_addresses; i++) {
		const size_t length = at < end ? *at++ : 0;
		if (length == 0 || length >= LINK_ADDRESS_SIZE || length > (size_t)(end - at))
			return false;
		memcpy(out->addresses[i], at, length);
		out->addresses[i][length] = 0;
		if (strlen(out->addresses[i]) != length || !is_address(out->addresses[i]))
			return false;
		at += length;
	}
	return at == end;
}

static int read_bytes(const uint8_t *bytes, size_t size, struct token *out, struct error *err)
{
	uint8_t check[crypto_generichash_BYTES_MIN];
	if (size < HEAD_BYTES + CHECK_BYTES)
		return error_set(err, -EINVAL, "the token is not complete: copy it again");
	size -= CHECK_BYTES;
	crypto_generichash(check, sizeof(check), bytes, size, NULL, 0);
	if (sodium_memcmp(check, bytes + size, CHECK_BYTES) != 0)
		return error_set(err, -EINVAL,
				 "the token is not complete, or was changed: copy it "
				 "again");
	if (bytes[0] != VERSION)
		return error_set(err, -EINVAL, "the token is of another version of skippipe");
	out->role = (enum keys_role)bytes[1];
	if (out->role != KEYS_AGENT && out->role != KEYS_CONSOLE && out->role != KEYS_WATCHER)
		return error_set(err, -EINVAL, "the token is for an unknown role");
	memcpy(out->controller.bytes, bytes + 2, KEYS_BYTES);
	out->n_addresses = bytes[HEAD_BYTES - 1];
	if (!read_addresses(bytes + HEAD_BYTES, bytes + size, out))
		return error_set(err, -EINVAL, "the token has no valid address");
	return 0;
}

int token_parse(const char *text, struct token *out, struct keys_identity **invitation,
		struct error *err)
{
	uint8_t bytes[BYTES_MOST];
	struct token token = { .n_addresses = 0 };
	size_t size = 0, length = strlen(text), head = strlen(TOKEN_PREFIX);
	const char *end = NULL;
	if (!token_is(text) || length >= TOKEN_SIZE)
		return error_set(err, -EINVAL, "expected a token of skippipe invite");
	int rc = 0;
	if (sodium_base642bin(bytes, sizeof(bytes), text + head, length - head, NULL, &size, &end,
			      BASE64) != 0 ||
	    end != text + length)
		rc = error_set(err, -EINVAL, "the token is not complete: copy it again");
	if (rc == 0)
		rc = read_bytes(bytes, size, &token, err);
	if (rc == 0)
		rc = keys_from_secret(invitation, bytes + 2 + KEYS_BYTES, err);
	sodium_memzero(bytes, sizeof(bytes));
	if (rc == 0)
		*out = token;
	return rc;
}

static const char spaces[] = " \t\r\n";

char *token_begin(char *text)
{
	text += byte_order_mark(text, strlen(text));
	return text + strspn(text, spaces);
}

/* Shortens the text to its first word, and wipes the rest. */
static void keep_first_word(char text[TOKEN_SIZE])
{
	const char *begin = token_begin(text);
	memmove(text, begin, strlen(begin) + 1);
	const size_t word = strcspn(text, spaces);
	sodium_memzero(text + word, TOKEN_SIZE - word);
}

/* Reads the first word of a file into memory that the caller wipes. file_read is not used, because
 * it does not wipe its buffers. */
static int read_word(const char *path, char out[TOKEN_SIZE], struct error *err)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	while (n > 0 && size < TOKEN_SIZE - 1) {
		n = read(fd, out + size, TOKEN_SIZE - 1 - size);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			size += (size_t)n;
	}
	int rc = n < 0 ? error_set(err, -errno, "%s: %s", is_stdin ? "standard input" : path,
				   strerror(errno))
		       : 0;
	if (fd >= 0 && !is_stdin)
		close(fd);
	out[rc == 0 ? size : 0] = 0;
	keep_first_word(out);
	if (rc == 0 && out[0] == 0)
		rc = error_set(err, -EINVAL, "%s: is empty", is_stdin ? "standard input" : path);
	return rc;
}

int token_take(char *value, char out[TOKEN_SIZE], struct error *err)
{
	value = token_begin(value);
	/* A Kubernetes secret, or a variable of a service manager, often ends with a newline. */
	value[strcspn(value, "\r\n")] = 0;
	if (value[0] == '@' || strcmp(value, "-") == 0)
		return read_word(value + (value[0] == '@'), out, err);
	const int n = snprintf(out, TOKEN_SIZE, "%s", value);
	keep_first_word(out);
	if (token_is(value))
		token_wipe(value);
	return n >= TOKEN_SIZE ? error_set(err, -EINVAL, "the token or address is too long") : 0;
}
