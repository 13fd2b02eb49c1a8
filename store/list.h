/* list.h - short lists as text, the form they have in the store's rows.
 *
 * Numbers "0 7 12"; what was counted "L3 B3 L4". Private to store/.
 */
#ifndef STORE_LIST_H
#define STORE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* Each gives the text to the caller (free); NULL without memory. */
char *list_print_u8(const uint8_t *list, uint32_t n);
char *list_print_u16(const uint16_t *list, uint32_t n);
char *list_print_counted(const struct store_counted *list, uint32_t n);

/* Each gives an array of *n to the caller (free; never NULL, even for none). -EBADMSG: the text is
 * not what the printer above makes; -ENOMEM. */
int list_parse_u8(const char *text, uint8_t **list, uint32_t *n);
int list_parse_u16(const char *text, uint16_t **list, uint32_t *n);
int list_parse_counted(const char *text, struct store_counted **list, uint32_t *n);

#endif
