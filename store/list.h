/* list.h - short lists as text, as the rows of the record hold them.
 *
 * A list of numbers is "0 7 12". A list of counted gradients is "L3 B4". It names the gradient of
 * the loss layer of microbatch 3, and the gradient of a backward pass of microbatch 4. Private to
 * store/.
 */
#ifndef STORE_LIST_H
#define STORE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* Each of these functions prints a list and returns the text, which the caller frees. */
char *list_print_u8(const uint8_t *list, uint32_t n);
char *list_print_u16(const uint16_t *list, uint32_t n);
char *list_print_counted(const struct store_counted *list, uint32_t n);

/* Each of these functions parses a list and gives an array of *n elements, which the caller frees.
 * The array is not NULL even if the list is empty. -EBADMSG: the text does not have the form that
 * the printers above write. */
int list_parse_u8(const char *text, uint8_t **list, uint32_t *n);
int list_parse_u16(const char *text, uint16_t **list, uint32_t *n);
int list_parse_counted(const char *text, struct store_counted **list, uint32_t *n);

#endif
