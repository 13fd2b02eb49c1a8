/* Compares the handshake with messages of another implementation: noiseprotocol 0.3.1 for Python,
 * with the keys below (SHA-256 of "initiator static" and so on). Also tests messages that must be
 * refused. */
#include "wire/sessions/noise.h"

#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "base/tests/test.h"
#include "wire/identity.h"
#include "wire/sessions/seal.h"

static const char prologue[] = "skippipe test prologue";
static const char first[] = "first payload", second[] = "second payload";
static const char first_hex[] = "e91cb54a921625d460fb12619c852bb40a21b4e55077827fd19a9bca6607cd5c76"
				"05571ab8c3e2587ab7b80ded0a"
				"520525ad1c4b38d407595d4095181e6fa26b553d6835f83b54437408aaf11ecade"
				"e58845815e5e1cffdfed62c558"
				"d08f06ffcbac0e10e20539083a7ad0cb97";
static const char second_hex[] = "83b5a6ba9c40fbdba070e69b84ff3d88191fba6b8c604849de918e5a5743ef3c9"
				 "9e6616223ae03b0ea17b399f4ab"
				 "2c2a08cbb37337aa729117cef50794c0";
/* The text "transport", encrypted with the key of each direction. The nonce is 0, and there is no
 * associated data. */
static const char from_initiator_hex[] = "837d5b607a0fe03f11c36bc45169c41deaf10aa9e4866df9af";
static const char from_responder_hex[] = "68074bf5f4c8f62b737384e5382997f548a9fcfa26d645b87a";

struct parties {
	struct keys_identity initiator, responder;
	uint8_t initiator_ephemeral[32], responder_ephemeral[32];
};

static void unhex(uint8_t *to, size_t size, const char *hex)
{
	size_t got;
	assert_int_equal(sodium_hex2bin(to, size, hex, strlen(hex), NULL, &got, NULL), 0);
	assert_int_equal(got, size);
}

static void setup(struct parties *p)
{
	assert_true(sodium_init() >= 0);
	unhex(p->initiator.secret, 32,
		"483ac9dccb949b68b5403dc4e275aa970eb9d806dcbef2ffe4e48871d4ceecee");
	unhex(p->responder.secret, 32,
		"3b89c555c37e6ed93a5a7a6226b02a3a276fa974d6a963b0ccd654b04365d89a");
	unhex(p->initiator_ephemeral, 32,
		"620be318ccfe9b1685ba2954a24c1b57f2cec0e57e5e2e0ae7c831e91d14309f");
	unhex(p->responder_ephemeral, 32,
		"4f59b20a2e70ef843c89814a5b15c851882fccafd2ffbde0f825b60d0f90f5ae");
	crypto_scalarmult_base(p->initiator.public.bytes, p->initiator.secret);
	crypto_scalarmult_base(p->responder.public.bytes, p->responder.secret);
}

static void begin(struct parties *p, struct noise *i, struct noise *r)
{
	setup(p);
	noise_init(i, true, &p->initiator, &p->responder.public, prologue, strlen(prologue));
	noise_init(r, false, &p->responder, NULL, prologue, strlen(prologue));
}

static void expect_box(const uint8_t key[32], const char *hex)
{
	static const uint8_t nonce[12];
	uint8_t box[9 + 16], expected[9 + 16];
	unhex(expected, sizeof(expected), hex);
	crypto_aead_chacha20poly1305_ietf_encrypt(box, NULL, (const uint8_t *)"transport", 9, NULL,
						  0, NULL, nonce, key);
	assert_memory_equal(box, expected, sizeof(box));
}

TEST(agrees_with_another_implementation)
{
	struct parties p;
	struct noise i, r;
	uint8_t m1[13 + NOISE_FIRST_EXTRA], m2[14 + NOISE_SECOND_EXTRA], expected[256], payload[64];
	uint8_t i_send[32], i_receive[32], r_send[32], r_receive[32];
	begin(&p, &i, &r);

	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), 0);
	unhex(expected, sizeof(m1), first_hex);
	assert_memory_equal(m1, expected, sizeof(m1));
	assert_int_equal(noise_read_first_key(&r, m1, sizeof(m1)), 0);
	assert_true(keys_equal(&r.peer, &p.initiator.public));
	assert_int_equal(noise_read_first_payload(&r, m1, sizeof(m1), payload), 0);
	assert_memory_equal(payload, first, 13);

	assert_int_equal(noise_write_second(&r, p.responder_ephemeral, second, 14, m2), 0);
	unhex(expected, sizeof(m2), second_hex);
	assert_memory_equal(m2, expected, sizeof(m2));
	assert_int_equal(noise_read_second(&i, m2, sizeof(m2), payload), 0);
	assert_memory_equal(payload, second, 14);

	noise_split(&i, i_send, i_receive);
	noise_split(&r, r_send, r_receive);
	assert_memory_equal(i_send, r_receive, 32);
	assert_memory_equal(r_send, i_receive, 32);
	expect_box(i_send, from_initiator_hex);
	expect_box(r_send, from_responder_hex);
}

static int read_first(struct noise *r, const uint8_t *m, size_t size)
{
	uint8_t payload[256];
	int rc = noise_read_first_key(r, m, size);
	return rc < 0 ? rc : noise_read_first_payload(r, m, size, payload);
}

TEST(every_flipped_bit_is_refused)
{
	struct parties p;
	struct noise i, r, ready;
	uint8_t m1[13 + NOISE_FIRST_EXTRA], m2[14 + NOISE_SECOND_EXTRA], payload[64];
	begin(&p, &i, &ready);
	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), 0);
	for (size_t bit = 0; bit < 8 * sizeof(m1); bit++) {
		if (bit == 255)
			/* X25519 ignores the top bit of a key; a test below checks that the hash
			 * covers this bit */
			continue;
		r = ready;
		m1[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(read_first(&r, m1, sizeof(m1)), -EBADMSG);
		m1[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	r = ready;
	m1[31] ^= 0x80;
	assert_int_equal(read_first(&r, m1, sizeof(m1)), -EBADMSG);
	m1[31] ^= 0x80;
	assert_int_equal(read_first(&ready, m1, sizeof(m1)), 0);
	assert_int_equal(noise_write_second(&ready, p.responder_ephemeral, second, 14, m2), 0);
	for (size_t bit = 0; bit < 8 * sizeof(m2); bit++) {
		m2[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(noise_read_second(&i, m2, sizeof(m2), payload), -EBADMSG);
		m2[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	/* After the forged message, the real message must still be accepted. */
	assert_int_equal(noise_read_second(&i, m2, sizeof(m2), payload), 0);
}

TEST(wrong_keys_and_prologues_are_refused)
{
	struct parties p;
	struct noise i, r;
	uint8_t m1[13 + NOISE_FIRST_EXTRA];
	static const struct keys_public zero;
	begin(&p, &i, &r);
	assert_int_equal(noise_read_first_key(&r, m1, NOISE_FIRST_EXTRA - 1), -EBADMSG);
	noise_init(&i, true, &p.initiator, &p.initiator.public, prologue, strlen(prologue));
	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), 0);
	assert_int_equal(read_first(&r, m1, sizeof(m1)), -EBADMSG);
	begin(&p, &i, &r);
	noise_init(&i, true, &p.initiator, &p.responder.public, "x", 1);
	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), 0);
	assert_int_equal(read_first(&r, m1, sizeof(m1)), -EBADMSG);
	noise_init(&i, true, &p.initiator, &zero, prologue, strlen(prologue));
	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), -EINVAL);
}

/* With the zero point as public key, every secret gives the same shared secret. The handshake must
 * refuse the zero point both as a static key and as an ephemeral key. */
TEST(a_key_that_shares_nothing_is_refused)
{
	struct parties p;
	struct noise i, r, ready;
	struct keys_identity nobody;
	uint8_t m1[13 + NOISE_FIRST_EXTRA], payload[64];
	begin(&p, &i, &ready);
	nobody = p.initiator;
	memset(nobody.public.bytes, 0, sizeof(nobody.public.bytes));
	noise_init(&i, true, &nobody, &p.responder.public, prologue, strlen(prologue));
	assert_int_equal(noise_write_first(&i, p.initiator_ephemeral, first, 13, m1), 0);
	r = ready;
	/* this first step does not check the key yet */
	assert_int_equal(noise_read_first_key(&r, m1, sizeof(m1)), 0);
	assert_int_equal(noise_read_first_payload(&r, m1, sizeof(m1), payload), -EBADMSG);
	memset(m1, 0, KEYS_BYTES);
	assert_int_equal(noise_read_first_key(&ready, m1, sizeof(m1)), -EBADMSG);
}

TEST(the_window_knows_what_it_saw)
{
	struct seal_window w = {0};
	static uint8_t seen[20000];
	uint64_t top = 0, x = 1;
	/* Compares the window with a plain array of all counters that were marked so far. */
	for (int n = 0; n < 200000; n++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t back = (x >> 59) % 3 == 0 ? 0 : (x >> 33) % 1200,
			 forward = (x >> 50) % 100 == 0 ? 700 : 3;
		uint64_t counter = top + (x >> 60) % forward;
		counter = counter > back ? counter - back : counter;
		if (counter >= sizeof(seen))
			break;
		bool fresh = seal_window_fresh(&w, counter);
		if (seen[counter])
			assert_false(fresh);
		else if (counter >= top || top - counter <= SEAL_WINDOW - 64)
			assert_true(fresh);
		if (fresh) {
			seal_window_mark(&w, counter);
			seen[counter] = 1;
			top = counter >= top ? counter + 1 : top;
		}
	}
	assert_true(top > 15000);
	assert_true(seal_window_fresh(&w, UINT64_MAX / 2));
}

TEST(both_ciphers_seal)
{
	static const uint8_t secret[32] = {7};
	uint8_t data[100 + SEAL_TAG], plain[100];
	assert_true(sodium_init() >= 0);
	memset(plain, 5, sizeof(plain));
	for (enum seal_cipher cipher = SEAL_XCHACHA20; cipher <= SEAL_AES256_GCM; cipher++) {
		_Alignas(16) struct seal_key key;
		if (cipher == SEAL_AES256_GCM && !seal_has_aes())
			continue;
		seal_key_init(&key, cipher, secret);
		for (size_t size = 0; size <= sizeof(plain); size += 25) {
			memcpy(data, plain, size);
			seal_close(&key, 9, "head", 4, data, size);
			assert_int_equal(seal_open(&key, 9, "Head", 4, data, size), -EBADMSG);
			memcpy(data, plain, size);
			seal_close(&key, 9, "head", 4, data, size);
			assert_int_equal(seal_open(&key, 10, "head", 4, data, size), -EBADMSG);
			memcpy(data, plain, size);
			seal_close(&key, 9, "head", 4, data, size);
			assert_int_equal(seal_open(&key, 9, "head", 4, data, size), 0);
			assert_memory_equal(data, plain, size);
		}
	}
}
